// Writes JSON text: objects, arrays, strings, integers. Commas are its business; order and nesting are the caller's.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>

namespace zerocomm::shard {

// A JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  // The next key or value starts on a line of its own.
  JsonWriter& line();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth);
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) JsonWriter& value(Integer number) {
    separate();
    text_ += std::to_string(number);
    return *this;
  }
  template <class Value>
  JsonWriter& member(std::string_view name, Value member_value) {
    return key(name).value(member_value);
  }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  bool need_comma_ = false;
  bool need_line_ = false;
};

}  // namespace zerocomm::shard
