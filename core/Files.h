//===- Files.h - system calls on files, interrupted or not ----------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ds {

/// open(2), again if a signal came in between.
int openFile(const char *path, int flags, mode_t mode = 0) noexcept;

/// Opens a file for reading; -1, and errno, if it cannot be. Throws ds::Error for a pipe, a device or a socket, of
/// which a reader would wait, or never see the end.
int openRegularFile(const std::string &path);

/// Writes all bytes, in as many pieces as it takes. If not all could be written, errno says why.
[[nodiscard]] bool writeAll(int file, std::span<const std::byte> bytes) noexcept;

/// What a file holds, at most `limit` bytes. Nothing, and errno, if it cannot be read; throws as openRegularFile.
std::optional<std::string> readWhole(const std::string &path, size_t limit = SIZE_MAX);

/// Whether there is a folder, or anything, at a path. Throws ds::Error where that cannot be told: an I/O error is not
/// the same as nothing there.
bool isFolder(const std::filesystem::path &path);
bool isThere(const std::filesystem::path &path);

/// What is in a folder, sorted. Throws ds::Error naming the folder.
std::vector<std::filesystem::path> listFolder(const std::filesystem::path &folder);

} // namespace ds
