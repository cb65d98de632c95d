// Reads model files. The only file that knows nlohmann-json.
#include "cli/manifest.hpp"

#include "cli/failure.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>

#include <sys/stat.h>

namespace zerocomm::cli {
namespace {

using Json = nlohmann::json;

// A model file is small; these stop one that would expand without end.
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::size_t kMaxNodes = 4'000'000;
constexpr std::size_t kMaxDepth = 16;

struct DtypeName {
  const char* name;
  zc_dtype dtype;
};
constexpr DtypeName kDtypes[] = {{"f32", ZC_DTYPE_F32},
                                 {"f16", ZC_DTYPE_F16},
                                 {"bf16", ZC_DTYPE_BF16},
                                 {"f8e4m3", ZC_DTYPE_F8E4M3},
                                 {"i64", ZC_DTYPE_I64}};

// Consecutive stacked tensors of one pattern are used layer by layer, not tensor by tensor.
struct Stack {
  std::string pattern;
  std::size_t layers = 0;
  std::vector<std::size_t> tensors;
};

class Expander {
 public:
  explicit Expander(const std::string& source) : source_(source) {}

  Manifest expand(const Json& root) {
    if (!root.is_object() || text_of(root, "format", "") != "zc.model")
      throw Failure(source_ + ": not a model file: \"format\" must be \"zc.model\"");
    if (count_of(root, "version", 0) != 1)
      throw Failure(source_ + ": version " + root.value("version", Json(nullptr)).dump() +
                    " of the format is not known");
    manifest_.name = text_of(root, "name", "");
    default_dtype_ = text_of(root, "dtype", "f32");
    walk(list_of(root, "params"), {}, 0);
    flush_stack();
    return std::move(manifest_);
  }

 private:
  using Variables = std::map<std::string, std::string>;

  [[noreturn]] void fail(const std::string& what) const { throw Failure(source_ + ": " + what); }

  std::string text_of(const Json& node, const char* key, const char* fallback) const {
    const auto found = node.find(key);
    if (found == node.end()) {
      if (fallback == nullptr) fail(std::string("an entry has no \"") + key + "\"");
      return fallback;
    }
    if (!found->is_string()) fail(std::string("\"") + key + "\" is not a text");
    auto text = found->get<std::string>();
    if (text.find('\0') != std::string::npos) fail(std::string("\"") + key + "\" holds a NUL");
    return text;
  }

  std::size_t count_of(const Json& node, const char* key, std::size_t fallback) const {
    const auto found = node.find(key);
    if (found == node.end()) return fallback;
    if (!found->is_number_unsigned()) fail(std::string("\"") + key + "\" is not a whole number");
    return found->get<std::size_t>();
  }

  bool truth_of(const Json& node, const char* key, bool fallback) const {
    const auto found = node.find(key);
    if (found == node.end()) return fallback;
    if (!found->is_boolean()) fail(std::string("\"") + key + "\" is neither true nor false");
    return found->get<bool>();
  }

  const Json& list_of(const Json& node, const char* key) const {
    const auto found = node.find(key);
    if (found == node.end() || !found->is_array()) fail(std::string("\"") + key + "\" is not a list");
    return *found;
  }

  // Replaces every {variable}. `free_value` is for the one variable that no repeat block sets, or NULL.
  std::string fill(const std::string& pattern, const Variables& variables, const std::string* free_value) const {
    std::string filled;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      const std::size_t end = pattern[i] == '{' ? pattern.find('}', i) : std::string::npos;
      if (end == std::string::npos) {
        filled += pattern[i];
        continue;
      }
      const auto found = variables.find(pattern.substr(i + 1, end - i - 1));
      if (found == variables.end() && free_value == nullptr) fail("'" + pattern + "' uses a variable that is not set");
      filled += found == variables.end() ? *free_value : found->second;
      i = end;
    }
    return filled;
  }

  void walk(const Json& nodes, const Variables& variables, std::size_t depth) {
    if (depth > kMaxDepth) fail("repeat blocks nest deeper than " + std::to_string(kMaxDepth));
    for (const Json& node : nodes) {
      if (!node.is_object()) fail("\"params\" holds something that is neither a tensor nor a repeat block");
      if (!node.contains("repeat")) {
        count_node();
        add_tensor(node, variables);
        continue;
      }
      const std::size_t first = count_of(node, "from", 0), repeats = count_of(node, "repeat", 0);
      const Json& inner = list_of(node, "params");
      const std::string variable = text_of(node, "var", "i");
      Variables bound = variables;
      for (std::size_t k = 0; k < repeats; ++k) {
        count_node();
        bound[variable] = std::to_string(first + k);
        walk(inner, bound, depth + 1);
      }
    }
  }

  void count_node() {
    if (++nodes_ > kMaxNodes) fail("it expands to more than " + std::to_string(kMaxNodes) + " entries");
  }

  zc_dtype dtype_of(const std::string& tensor, const std::string& name) const {
    for (const DtypeName& known : kDtypes)
      if (name == known.name) return known.dtype;
    fail("tensor '" + tensor + "' has dtype '" + name + "', which is not known");
  }

  std::vector<std::size_t> shape_of(const Json& node, const std::string& tensor) const {
    const auto found = node.find("shape");
    if (found == node.end() || !found->is_array()) fail("tensor '" + tensor + "' has no shape");
    std::vector<std::size_t> shape;
    for (const Json& extent : *found) {
      if (!extent.is_number_unsigned()) fail("tensor '" + tensor + "' has a shape that is not whole numbers");
      shape.push_back(extent.get<std::size_t>());
    }
    return shape;
  }

  std::size_t element_count(const std::vector<std::size_t>& shape, const std::string& tensor) const {
    std::size_t count = 1;
    bool is_empty = false, overflows = false;
    for (const std::size_t extent : shape) {
      is_empty |= extent == 0;
      overflows |= __builtin_mul_overflow(count, extent == 0 ? 1 : extent, &count);
    }
    if (is_empty) return 0;
    if (overflows) fail("tensor '" + tensor + "' has more elements than 64 bits can count");
    return count;
  }

  void add_tensor(const Json& node, const Variables& variables) {
    ManifestTensor tensor;
    tensor.name = fill(text_of(node, "name", nullptr), variables, nullptr);
    const std::string kind = text_of(node, "kind", "param");
    if (kind == "buffer") return;
    if (kind != "param") fail("tensor '" + tensor.name + "' is of kind '" + kind + "', which is not known");
    tensor.unit = fill(text_of(node, "module", nullptr), variables, nullptr);
    tensor.dtype = dtype_of(tensor.name, text_of(node, "dtype", default_dtype_.c_str()));
    const std::vector<std::size_t> shape = shape_of(node, tensor.name);
    tensor.count = element_count(shape, tensor.name);
    if (node.contains("tied_to") && !node["tied_to"].is_null())
      tensor.tied_to = fill(text_of(node, "tied_to", nullptr), variables, nullptr);
    // A tie that does not say is as frozen as its owner.
    const auto owner = frozen_.find(tensor.tied_to);
    tensor.frozen = !truth_of(node, "trainable", owner == frozen_.end() || !owner->second);
    frozen_[tensor.name] = tensor.frozen;
    manifest_.tensors.push_back(tensor);
    if (node.contains("stacked")) {
      add_stacked(tensor, shape, text_of(node, "stacked", nullptr), variables);
    } else {
      flush_stack();
      manifest_.uses.push_back({manifest_.tensors.size() - 1, {0, tensor.count}, tensor.unit});
    }
  }

  void add_stacked(const ManifestTensor& tensor, const std::vector<std::size_t>& shape, const std::string& pattern,
                   const Variables& variables) {
    if (shape.empty()) fail("tensor '" + tensor.name + "' is stacked but has no axis");
    const std::string marker(1, '\0');
    const std::string filled = fill(pattern, variables, &marker);
    if (filled.find('\0') == std::string::npos)
      fail("tensor '" + tensor.name + "' is stacked as '" + pattern + "', which names one module only");
    if (stack_.pattern != filled || stack_.layers != shape[0]) flush_stack();
    stack_.pattern = filled;
    stack_.layers = shape[0];
    stack_.tensors.push_back(manifest_.tensors.size() - 1);
  }

  std::string layer_name(std::size_t layer) const {
    std::string name;
    for (const char c : stack_.pattern) c == '\0' ? name += std::to_string(layer) : name += c;
    return name;
  }

  void flush_stack() {
    if (!stack_.tensors.empty() && stack_.layers == 0) fail("a stacked tensor has no layers");
    for (std::size_t layer = 0; layer < stack_.layers; ++layer)
      for (const std::size_t t : stack_.tensors) {
        count_node();
        const std::size_t slice = manifest_.tensors[t].count / stack_.layers;
        manifest_.uses.push_back({t, {layer * slice, slice}, layer_name(layer)});
      }
    stack_ = Stack{};
  }

  const std::string& source_;
  Manifest manifest_;
  std::string default_dtype_;
  std::unordered_map<std::string, bool> frozen_;
  Stack stack_;
  std::size_t nodes_ = 0;
};

// nlohmann's texts begin with an identifier in brackets.
std::string reason(const Json::parse_error& error) {
  const std::string text = error.what();
  const std::size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Manifest parse_manifest(const std::string& text, const std::string& source) {
  if (text.empty()) throw Failure(source + ": the file is empty");
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    throw Failure(source + ": not JSON: " + reason(error));
  }
  return Expander(source).expand(root);
}

Manifest read_manifest(const std::string& path) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw Failure(path + ": " + std::strerror(errno));
  struct stat status {};
  if (fstat(fileno(file.get()), &status) == 0 && S_ISDIR(status.st_mode)) throw Failure(path + ": is a folder");
  std::string text;
  char chunk[1 << 16];
  for (std::size_t got = 0; (got = std::fread(chunk, 1, sizeof chunk, file.get())) > 0;) {
    text.append(chunk, got);
    if (text.size() > kMaxFileBytes)
      throw Failure(path + ": larger than " + std::to_string(kMaxFileBytes) + " bytes; not a model file");
  }
  if (std::ferror(file.get())) throw Failure(path + ": " + std::strerror(errno));
  return parse_manifest(text, path);
}

TensorList tensor_list(const Manifest& manifest) {
  TensorList list;
  list.tensors.reserve(manifest.tensors.size());
  for (const ManifestTensor& tensor : manifest.tensors) {
    zc_tensor entry{};
    entry.struct_size = sizeof entry;
    entry.name = tensor.name.c_str();
    entry.unit = tensor.unit.c_str();
    entry.count = tensor.count;
    entry.dtype = tensor.dtype;
    entry.frozen = tensor.frozen;
    entry.tied_to = tensor.tied_to.empty() ? nullptr : tensor.tied_to.c_str();
    list.tensors.push_back(entry);
  }
  list.uses.reserve(manifest.uses.size());
  for (const ManifestUse& use : manifest.uses)
    list.uses.push_back(zc_use{sizeof(zc_use), use.tensor, use.slice.offset, use.slice.count, use.unit.c_str()});
  return list;
}

}  // namespace zerocomm::cli
