# The warnings of everything that this project compiles. PRIVATE: nobody who links the library inherits them.

function(zc_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
  if(ZC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
