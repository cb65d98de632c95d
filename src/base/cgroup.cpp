#include "base/cgroup.hpp"

#include "base/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>
#include <vector>

namespace zerocomm {
namespace {

// Reads a file block by block into `text`, until its end or until `enough` has seen what it needs.
bool read_blocks(const std::string& path, std::string& text, FunctionRef<bool()> enough) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return false;
  char block[4096];
  for (;;) {
    const ssize_t got = read(file.get(), block, sizeof block);
    if (got == 0) return true;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    text.append(block, static_cast<std::size_t>(got));
    if (enough()) return true;
  }
}

// Cuts the part before `end` off the front of `text`, which need not hold one.
std::string_view cut(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty())
    if (cut(list, ',') == word) return true;
  return false;
}

// mountinfo writes blanks and backslashes as \ and three octal digits.
std::string unescape(std::string_view text) {
  const auto digit = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result == "/" ? "" : result;
}

struct Mount {
  std::string top;    // the cgroup that is mounted; "" for the topmost
  std::string point;  // where
};

// The cgroups of one kind, as this process sees them.
struct Hierarchy {
  std::size_t index;  // of the kind
  const CgroupKind& kind;
  std::string path;  // of this process's cgroup; "" for the topmost
  std::vector<Mount> mounts;
  bool complete = false;  // one of the mounts shows this process's cgroup and all above it
};

// The path of this process's cgroup in lines of "number:controllers:path".
std::optional<std::string> find_path(std::string_view cgroups, const CgroupKind& kind) {
  while (!cgroups.empty()) {
    std::string_view line = cut(cgroups, '\n');
    cut(line, ':');
    const std::string_view controllers = cut(line, ':');
    const bool wanted = kind.controller.empty() ? controllers.empty() : has_word(controllers, kind.controller);
    if (wanted && !line.empty()) return std::string(line == "/" ? "" : line);
  }
  return std::nullopt;
}

// Inside a cgroup namespace the path of a cgroup outside begins with "/..".
bool is_outside(const std::string& path) { return path.compare(0, 3, "/..") == 0; }

// Keeps the mount of one line of mountinfo, if it is one of this hierarchy.
void add_mount(Hierarchy& hierarchy, std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return;
  std::string_view rest = line.substr(dash + 3);
  if (cut(rest, ' ') != hierarchy.kind.file_system) return;
  cut(rest, ' ');
  if (!hierarchy.kind.controller.empty() && !has_word(rest, hierarchy.kind.controller)) return;
  for (int field = 0; field < 3; ++field) cut(line, ' ');
  const std::string top = unescape(cut(line, ' '));
  hierarchy.mounts.push_back({top, unescape(cut(line, ' '))});
  if (top.empty() && !is_outside(hierarchy.path)) hierarchy.complete = true;
}

// There may be hundreds of mounts, and the kernel takes its time to list them: stops as soon as it can.
void find_mounts(const std::string& mountinfo, std::vector<Hierarchy>& hierarchies) {
  std::string text;
  std::size_t seen = 0;
  const auto take_lines = [&] {
    for (std::size_t end = 0; (end = text.find('\n', seen)) != std::string::npos; seen = end + 1)
      for (Hierarchy& hierarchy : hierarchies) add_mount(hierarchy, std::string_view(text).substr(seen, end - seen));
    return std::all_of(hierarchies.begin(), hierarchies.end(), [](const Hierarchy& each) { return each.complete; });
  };
  read_blocks(mountinfo, text, take_lines);
}

// Where a mount shows the cgroup `path`, or nothing if it lies outside.
std::optional<std::string> folder_of(const Mount& mount, const std::string& path) {
  if (path.compare(0, mount.top.size(), mount.top) != 0 || is_outside(path)) return std::nullopt;
  const std::string rest = path.substr(mount.top.size());
  if (!rest.empty() && rest[0] != '/') return std::nullopt;
  return mount.point + rest;
}

using Visit = FunctionRef<void(std::size_t, const std::string&)>;

// A cgroup and all above it, up to the mount.
void visit_up(std::size_t index, const Mount& mount, std::string folder, Visit& visit) {
  for (;;) {
    visit(index, folder);
    if (folder.size() <= mount.point.size()) return;
    folder.resize(folder.rfind('/'));
  }
}

void visit_up(const Hierarchy& hierarchy, Visit& visit) {
  bool inside = false;
  for (const Mount& mount : hierarchy.mounts) {
    const auto folder = folder_of(mount, hierarchy.path);
    if (!folder) continue;
    inside = true;
    visit_up(hierarchy.index, mount, *folder, visit);
  }
  if (inside) return;
  // A container may see its own cgroup as the mount, and a path that is only right outside.
  for (const Mount& mount : hierarchy.mounts) visit_up(hierarchy.index, mount, mount.point, visit);
}

}  // namespace

std::string read_small_file(const std::string& path) {
  std::string text;
  return read_blocks(path, text, [] { return false; }) ? text : std::string();
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = stop == text.data() + text.size() || *stop == '\n' || *stop == ' ';
  if (error != std::errc() || !whole) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_of(std::string_view lines, std::string_view key) {
  while (!lines.empty()) {
    std::string_view line = cut(lines, '\n');
    if (cut(line, ' ') == key) return leading_number(line);
  }
  return std::nullopt;
}

void visit_cgroups(const std::string& root, std::span<const CgroupKind> kinds, Visit visit) {
  const std::string cgroups = read_small_file(root + "/proc/self/cgroup");
  std::vector<Hierarchy> hierarchies;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (auto path = find_path(cgroups, kinds[i])) hierarchies.push_back({i, kinds[i], std::move(*path), {}, false});
  find_mounts(root + "/proc/self/mountinfo", hierarchies);
  for (const Hierarchy& hierarchy : hierarchies) visit_up(hierarchy, visit);
}

}  // namespace zerocomm
