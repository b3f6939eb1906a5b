//===- CheckpointFolder.cpp - the folder of --save and --resume -----------===//
#include "runtime/checkpoint/CheckpointFolder.h"

#include "core/AtomicFile.h"
#include "core/Error.h"
#include "core/Files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace ds::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "global_step", unfinished = ".part";

std::optional<uint64_t> stepOf(std::string_view name) {
  uint64_t step = 0;
  if (!name.starts_with(prefix))
    return std::nullopt;
  const char *begin = name.data() + prefix.size(), *end = name.data() + name.size();
  const auto [rest, problem] = std::from_chars(begin, end, step);
  if (problem != std::errc() || rest != end || name != checkpointName(step)) // "global_step007" is none of ours
    return std::nullopt;
  return step;
}

bool isCheckpoint(const fs::path &folder) { return isThere(folder / "manifest.json"); }

void rename(const std::string &from, const std::string &to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw Error("cannot rename " + from + " to " + to + ": " + std::strerror(errno));
}

/// Both stay whole at every moment. Not on every file system.
bool exchange(const std::string &one, const std::string &other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

/// So that names in it outlive a crash. Some file systems refuse to flush a folder, which is no failure.
void flushFolder(const std::string &path) {
  const int folder = openFile(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    throw Error("cannot open " + path + ": " + std::strerror(errno));
  int flushed = 0;
  do
    flushed = ::fsync(folder);
  while (flushed != 0 && errno == EINTR);
  const int problem = flushed != 0 ? errno : 0;
  ::close(folder);
  if (problem != 0 && problem != EINVAL && problem != ENOTSUP)
    throw Error("cannot flush " + path + ": " + std::strerror(problem));
}

/// First by another name, so that a run that is killed meanwhile leaves nothing that looks like a checkpoint.
void removeCheckpoint(const fs::path &path) {
  const std::string aside = path.string() + ".removed" + std::string(unfinished);
  std::error_code problem;
  fs::remove_all(aside, problem);
  rename(path.string(), aside);
  fs::remove_all(aside, problem);
  if (problem)
    throw Error("cannot remove " + aside + ": " + problem.message());
}

} // namespace

std::string checkpointName(uint64_t step) { return std::string(prefix) + std::to_string(step); }

std::string rankFileName(uint64_t rank) {
  const std::string number = std::to_string(rank);
  return "rank-" + std::string(number.size() < 5 ? 5 - number.size() : 0, '0') + number + ".safetensors";
}

void makeFolder(const std::string &path) {
  if (::mkdir(path.c_str(), 0777) == 0 || (errno == EEXIST && isFolder(path)))
    return;
  const std::string above = fs::path(path).parent_path();
  if (errno == ENOENT && !above.empty() && above != path) {
    makeFolder(above);
    if (::mkdir(path.c_str(), 0777) == 0 || errno == EEXIST)
      return;
  }
  throw Error("cannot make folder " + path + ": " + std::strerror(errno));
}

std::optional<std::string> readRegular(const std::string &path, size_t limit) {
  if (isThere(path) && !fs::is_regular_file(path))
    throw Error(path + " is not a regular file");
  return readWhole(path, limit);
}

std::vector<uint64_t> checkpointsIn(const std::string &folder) {
  std::vector<uint64_t> steps;
  if (!isFolder(folder))
    return steps;
  for (const fs::path &path : listFolder(folder))
    if (const std::optional<uint64_t> step = stepOf(path.filename().string()); step && isCheckpoint(path))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<std::string> findCheckpoint(const std::string &folder, const std::string &tag) {
  const fs::path place(folder);
  if (!tag.empty()) {
    if (!isCheckpoint(place / tag))
      throw Error("--resume " + folder + " has no checkpoint " + tag + " (a folder with a manifest.json); " +
                  "ds-run checkpoint ls " + folder + " lists those that it has");
    return place / tag;
  }
  if (isCheckpoint(place))
    return folder;
  if (const std::string latest = place / "latest"; isThere(latest)) {
    std::optional<std::string> name = readRegular(latest, 4096);
    if (!name)
      throw Error(latest + " cannot be read: " + std::strerror(errno));
    name->erase(name->find_last_not_of(" \r\n") + 1);
    if (!stepOf(*name)) // another folder, or no name at all: whoever wrote it meant something else than the newest
      throw Error(latest + " does not hold the name of a checkpoint of its folder (global_stepN); remove that file, " +
                  "and the newest of them is taken");
    if (isCheckpoint(place / *name))
      return place / *name;
  }
  const std::vector<uint64_t> steps = checkpointsIn(folder);
  if (steps.empty())
    return std::nullopt;
  return place / checkpointName(steps.back());
}

void publishCheckpoint(const std::string &folder, const std::string &part, uint64_t step) {
  const std::string name = folder + "/" + checkpointName(step);
  flushFolder(part);
  const bool replaces = isThere(name);
  if (!replaces || !exchange(part, name)) {
    if (replaces)
      removeCheckpoint(name);
    rename(part, name);
  }
  flushFolder(folder);
  writeFileAtomically(folder + "/latest", checkpointName(step) + "\n");
  discardFolder(part); // where the one that was replaced is now
}

void removeOlder(const std::string &folder, uint64_t newest, uint64_t keep) {
  std::vector<uint64_t> steps = checkpointsIn(folder);
  const auto givenUp = std::upper_bound(steps.begin(), steps.end(), newest);
  std::rotate(steps.begin(), givenUp, steps.end()); // oldest first
  for (size_t i = 0; i + keep < steps.size(); ++i)
    removeCheckpoint(fs::path(folder) / checkpointName(steps[i]));
}

void removeUnfinished(const std::string &folder) {
  for (const fs::path &path : listFolder(folder)) {
    const std::string name = path.filename();
    std::error_code problem;
    if (name.starts_with(prefix) && name.ends_with(unfinished) && isFolder(path))
      fs::remove_all(path, problem);
    if (problem)
      throw Error("cannot remove " + path.string() + ", which an older run left: " + problem.message());
  }
}

void discardFolder(const std::string &path) noexcept {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

FolderLock::FolderLock(const std::string &folder)
    : folder_(openFile(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_ < 0)
    throw Error("--save " + folder + " cannot be opened: " + std::strerror(errno));
  int locked = 0;
  do
    locked = ::flock(folder_, LOCK_EX | LOCK_NB);
  while (locked != 0 && errno == EINTR);
  if (locked == 0 || errno != EWOULDBLOCK) // a file system without locks has none to respect
    return;
  ::close(folder_);
  throw Error("--save " + folder + " is being written by another run; give each run a folder of its own");
}

FolderLock::~FolderLock() { ::close(folder_); }

} // namespace ds::runtime
