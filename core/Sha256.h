//===- Sha256.h - which file it was ---------------------------------------===//
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace ds {

/// SHA-256 (FIPS 180-4), 32 bytes. Throws ds::Error where libcrypto has none.
std::string sha256(std::span<const std::byte> bytes);

/// Of a whole file, read a MiB at a time. Throws ds::Error that names the file.
std::string sha256OfFile(const std::filesystem::path &path);

/// As sha256sum prints it: two lower-case digits a byte.
std::string hexOf(std::string_view bytes);

} // namespace ds
