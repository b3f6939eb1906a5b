//===- SmallFileSystem.h - a disk that is nearly full ---------------------===//
#pragma once

#include "test/unit/runtime/Files.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <sys/mount.h>

namespace ds::test {

/// A file system of its own with so little room; unmounted at the end.
class SmallFileSystem {
public:
  SmallFileSystem(const std::string &path, const std::string &size) : path_(path) {
    std::filesystem::create_directory(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallFileSystem() {
    if (mounted_)
      ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallFileSystem(const SmallFileSystem &) = delete;
  SmallFileSystem &operator=(const SmallFileSystem &) = delete;

  bool mounted() const { return mounted_; }
  /// Leaves `bytes` free, in whole pages.
  void fill(uint64_t bytes) const {
    const uint64_t free = std::filesystem::space(path_).available;
    writeFile(path_ + "/ballast", std::string(free - std::min(free, bytes), 'x'));
  }

private:
  const std::string path_;
  bool mounted_;
};

} // namespace ds::test
