// The one-pass reduction against the scalar reference, for every combination of types and operation that exists.
#include "device/reduce.hpp"

#include "element_buffer.hpp"
#include "reduce_requests.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace zerocomm::device;
using reference::all_requests;
using reference::expected_bits;
using reference::Request;

constexpr std::size_t kCounts[] = {0, 1, 7, 8, 9, 1023, 1024, 1025, 10007};
constexpr std::size_t kFewCounts[] = {1, 9, 1025};

// How a call is made, apart from what it computes.
struct Form {
  std::size_t inputs = 3;
  std::size_t outputs = 1;
  bool misaligned = false;
  std::uint32_t null_inputs = 0;  // bit r: input r is null
  int aliased_input = -1;         // the output is this input
};

std::string describe(const Request& request, const Form& form, std::size_t count) {
  return std::string(zc_op_name(request.op)) + " of " + zc_dtype_name(request.in) + " into " +
         zc_dtype_name(request.out) + ", " + std::to_string(form.inputs) + " inputs, count " + std::to_string(count);
}

// Runs one call and compares every element of every output, the guards, and the inputs.
void expect_definition(const Request& request, const Form& form, std::size_t count, std::mt19937_64& random) {
  SCOPED_TRACE(describe(request, form, count));
  std::vector<ElementBuffer> inputs, outputs;
  for (std::size_t r = 0; r < form.inputs; ++r) {
    inputs.emplace_back(request.in, count, form.misaligned);
    inputs.back().fill(random);
  }
  for (std::size_t k = 0; k < form.outputs; ++k) {
    outputs.emplace_back(request.out, count, form.misaligned);
    outputs.back().fill(random);
  }
  const std::vector<ElementBuffer> inputs_before = inputs;
  std::vector<const void*> arguments, values;
  for (std::size_t r = 0; r < form.inputs; ++r) {
    const bool is_null = (form.null_inputs >> r & 1) != 0;
    arguments.push_back(is_null ? nullptr : inputs[r].data());
    values.push_back(is_null ? nullptr : inputs_before[r].data());
  }
  const bool aliased = form.aliased_input >= 0;
  ElementBuffer& first_output = aliased ? inputs[static_cast<std::size_t>(form.aliased_input)] : outputs[0];
  const ElementBuffer first_before = first_output;
  const std::vector<ElementBuffer> outputs_before = outputs;

  const ReduceArgs args{request.divisor, request.premul, request.accumulate};
  if (form.outputs == 1) {
    const ReduceFn reduce = find_reduce(request.in, request.out, request.op);
    ASSERT_NE(reduce, nullptr);
    reduce(arguments.data(), arguments.size(), first_output.data(), count, args);
  } else {
    const ReduceToManyFn reduce = find_reduce_to_many(request.in, request.out, request.op);
    ASSERT_NE(reduce, nullptr);
    std::vector<void*> destinations{first_output.data()};
    for (std::size_t k = 1; k < form.outputs; ++k) destinations.push_back(outputs[k].data());
    reduce(arguments.data(), arguments.size(), destinations.data(), destinations.size(), count, args);
  }

  for (std::size_t k = 0; k < form.outputs; ++k) {
    const ElementBuffer& output = k == 0 ? first_output : outputs[k];
    const ElementBuffer& before = k == 0 ? first_before : outputs_before[k];
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(same_element(request.out, output.data(), i, expected_bits(request, values, before.data(), i)))
          << "output " << k << " element " << i;
    ASSERT_TRUE(output.guards_intact()) << "output " << k;
  }
  for (std::size_t r = 0; r < form.inputs; ++r) {
    ASSERT_TRUE(inputs[r].guards_intact()) << "input " << r;
    if (static_cast<int>(r) != form.aliased_input) {
      ASSERT_EQ(inputs[r].contents(), inputs_before[r].contents());
    }
  }
}

TEST(Reduce, every_type_and_operation_equals_the_scalar_definition_at_every_count) {
  std::mt19937_64 random(1);
  const std::vector<Request> requests = all_requests();
  ASSERT_EQ(requests.size(), 76u);
  for (const Request& request : requests)
    for (const std::size_t count : kCounts) expect_definition(request, {}, count, random);
}

TEST(Reduce, any_number_of_inputs_is_reduced_in_rank_order) {
  std::mt19937_64 random(2);
  for (const Request& request : all_requests())
    for (const std::size_t inputs : {1u, 2u, 4u, 5u, 8u, 17u}) {
      Form form;
      form.inputs = inputs;
      expect_definition(request, form, 257, random);
    }
}

TEST(Reduce, buffers_off_alignment_by_one_element_give_the_same_result) {
  std::mt19937_64 random(3);
  for (const Request& request : all_requests())
    for (const std::size_t count : kCounts) {
      Form form;
      form.misaligned = true;
      expect_definition(request, form, count, random);
    }
}

TEST(Reduce, a_null_input_contributes_zeros_at_any_rank) {
  std::mt19937_64 random(4);
  for (const Request& request : all_requests())
    for (const std::uint32_t nulls : {1u, 2u, 4u, 3u, 5u, 7u}) {
      Form form;
      form.null_inputs = nulls;
      for (const std::size_t count : kFewCounts) expect_definition(request, form, count, random);
    }
}

TEST(Reduce, the_output_may_be_any_one_of_the_inputs) {
  std::mt19937_64 random(5);
  for (Request request : all_requests()) {
    if (zc_dtype_bytes(request.in) != zc_dtype_bytes(request.out)) continue;
    for (const bool accumulate : {false, true})
      for (int input = 0; input < 3; ++input) {
        if (accumulate && request.in != request.out) continue;
        request.accumulate = accumulate;
        Form form;
        form.aliased_input = input;
        for (const std::size_t count : {9u, 1025u, 3000u}) expect_definition(request, form, count, random);
      }
  }
}

TEST(Reduce, accumulate_adds_to_the_output_before_the_one_rounding) {
  std::mt19937_64 random(6);
  for (Request request : all_requests()) {
    request.accumulate = true;
    for (const std::size_t count : kCounts)
      if (count <= 1025) expect_definition(request, {}, count, random);
  }
}

TEST(Reduce, a_divisor_divides_once_after_the_operation) {
  std::mt19937_64 random(7);
  for (Request request : all_requests()) {
    if (!reference::is_float(request.in)) continue;
    for (const double divisor : {3.0, 0.1, 1024.0, -7.0, 1e-3})
      for (const bool accumulate : {false, true}) {
        request.divisor = divisor;
        request.accumulate = accumulate;
        for (const std::size_t count : kFewCounts) expect_definition(request, {}, count, random);
      }
  }
}

TEST(Reduce, one_result_is_stored_into_every_output) {
  std::mt19937_64 random(8);
  for (Request request : all_requests())
    for (const std::size_t outputs : {2u, 5u})
      for (const bool accumulate : {false, true}) {
        request.accumulate = accumulate;
        Form form;
        form.outputs = outputs;
        form.misaligned = accumulate;
        form.null_inputs = accumulate ? 2 : 0;
        if (!accumulate && zc_dtype_bytes(request.in) == zc_dtype_bytes(request.out)) form.aliased_input = 1;
        for (const std::size_t count : {0u, 1u, 1025u, 2049u}) expect_definition(request, form, count, random);
      }
}

TEST(Reduce, the_result_does_not_depend_on_where_a_range_is_cut) {
  std::mt19937_64 random(9);
  constexpr std::size_t kCount = 5000, kInputs = 4;
  for (const Request& request : all_requests()) {
    SCOPED_TRACE(describe(request, {}, kCount));
    const std::size_t in_bytes = zc_dtype_bytes(request.in), out_bytes = zc_dtype_bytes(request.out);
    std::vector<ElementBuffer> inputs;
    std::vector<const void*> whole;
    for (std::size_t r = 0; r < kInputs; ++r) {
      inputs.emplace_back(request.in, kCount);
      inputs.back().fill(random);
    }
    whole.reserve(kInputs);
    for (const ElementBuffer& input : inputs) whole.push_back(input.data());
    const ReduceArgs args{0, request.premul, false};
    const ReduceFn reduce = find_reduce(request.in, request.out, request.op);
    ElementBuffer expected(request.out, kCount), pieces(request.out, kCount);
    reduce(whole.data(), kInputs, expected.data(), kCount, args);
    for (std::size_t offset = 0; offset < kCount;) {
      const std::size_t count = std::min<std::size_t>(kCount - offset, 1 + random() % 1500);
      std::vector<const void*> part;
      part.reserve(kInputs);
      for (const void* input : whole) part.push_back(static_cast<const unsigned char*>(input) + offset * in_bytes);
      reduce(part.data(), kInputs, static_cast<unsigned char*>(pieces.data()) + offset * out_bytes, count, args);
      offset += count;
    }
    for (std::size_t i = 0; i < kCount; ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, static_cast<const unsigned char*>(expected.data()) + i * out_bytes, out_bytes);
      ASSERT_TRUE(same_element(request.out, pieces.data(), i, bits)) << i;
    }
  }
}

}  // namespace
