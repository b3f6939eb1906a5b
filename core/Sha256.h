//===- Sha256.h - which file it was ---------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ds {

/// SHA-256 (FIPS 180-4) of bytes that come in pieces. Throws ds::Error where libcrypto has none.
class Sha256 {
public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256 &) = delete;
  Sha256 &operator=(const Sha256 &) = delete;

  void add(std::span<const std::byte> bytes);
  /// Bytes added so far.
  uint64_t bytes() const { return bytes_; }
  /// 32 bytes; nothing may be added after.
  std::string finish();

private:
  struct Context;
  std::unique_ptr<Context> context_;
  uint64_t bytes_ = 0;
};

/// SHA-256, 32 bytes. Throws ds::Error where libcrypto has none.
std::string sha256(std::span<const std::byte> bytes);

/// Of a whole file, read a MiB at a time. Throws ds::Error that names the file.
std::string sha256OfFile(const std::filesystem::path &path);

/// As sha256sum prints it: two lower-case digits a byte.
std::string hexOf(std::string_view bytes);

} // namespace ds
