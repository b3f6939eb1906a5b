//===- Files.h - files that tests write -----------------------------------===//
#pragma once

#include "core/Error.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <span>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace ds::test {

/// A folder that is gone when the test ends.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ds-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;

  std::string operator/(const std::string &name) const { return (path_ / name).string(); }
  const std::filesystem::path &path() const { return path_; }

private:
  std::filesystem::path path_;
};

inline void writeFile(const std::string &path, const std::string &bytes) {
  std::filesystem::remove(path); // some file systems flush a file that is cut to nothing and written again
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<std::string> readLines(const std::string &path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    lines.push_back(line);
  return lines;
}

/// The bytes of elements, as they lie in memory.
template <typename T> std::string bytesOf(const std::vector<T> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), elements.size() * sizeof(T)};
}

/// A safetensors file from its JSON and its data.
inline std::string safetensors(const std::string &json, const std::string &data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(char(json.size() >> 8 * i & 0xFF));
  return bytes + json + data;
}

/// The text of the ds::Error that `body` throws.
template <typename Body> std::string errorOf(Body &&body) {
  try {
    body();
  } catch (const Error &error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_ERROR(statement, part) EXPECT_THAT_CONTAINS(::ds::test::errorOf([&] { statement; }), part)
#define EXPECT_THAT_CONTAINS(text, part)                                                                               \
  do {                                                                                                                 \
    const std::string actual_ = (text);                                                                                \
    EXPECT_NE(actual_.find(part), std::string::npos) << "in: " << actual_ << "\nnot found: " << (part);                \
  } while (false)

} // namespace ds::test
