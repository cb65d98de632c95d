// JSON text, and the escapes of its strings.
#include "shard/json_writer.hpp"

#include <cstddef>
#include <cstdint>

namespace zerocomm::shard {
namespace {

// Bytes of the UTF-8 character at the front of `text`; 0 if there is none. Overlong forms and surrogates are none.
std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t count = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < count) return 0;
  std::uint32_t code = first & (0x7fu >> count);
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code >= kSmallest[count] && code < 0x110000 && !is_surrogate ? count : 0;
}

void append_escape(std::string& quoted, unsigned char c) {
  constexpr char kHex[] = "0123456789abcdef";
  quoted += "\\u00";
  quoted += kHex[c >> 4];
  quoted += kHex[c & 15];
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t bytes = utf8_bytes(text);
    if (bytes == 0) {
      quoted += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      append_escape(quoted, static_cast<unsigned char>(c));
    } else {
      quoted += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return quoted += '"';
}

JsonWriter& JsonWriter::line() {
  need_line_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  text_ += json_quote(name);
  text_ += ':';
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  text_ += json_quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  need_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  need_comma_ = true;
  need_line_ = false;
  return *this;
}

void JsonWriter::separate() {
  if (need_comma_) text_ += ',';
  if (need_line_) text_ += '\n';
  need_comma_ = true;
  need_line_ = false;
}

}  // namespace zerocomm::shard
