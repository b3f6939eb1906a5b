//===- FileDamage.cpp - whether a checkpoint's files are as they were written -===//
#include "runtime/checkpoint/FileDamage.h"

#include "core/Files.h"
#include "core/Sha256.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/ReadOnlyFile.h"

#include <cstdint>
#include <optional>
#include <string>

namespace ds::runtime {

std::optional<std::string> visibleDamage(const std::string &folder, const Manifest::File &file) {
  const std::string path = folder + "/" + file.name;
  if (!isThere(path))
    return "checkpoint " + folder + " lacks its file " + file.name + " of SHA-256 " + file.sha256;
  if (const uint64_t bytes = ReadOnlyFile(path).bytes(); bytes != file.bytes)
    return path + " is damaged: it has " + std::to_string(bytes) + " bytes, its manifest says " +
           std::to_string(file.bytes);
  return std::nullopt;
}

std::optional<std::string> damage(const std::string &folder, const Manifest::File &file) {
  if (const std::optional<std::string> visible = visibleDamage(folder, file))
    return visible;
  const std::string path = folder + "/" + file.name;
  if (const std::string found = hexOf(sha256OfFile(path)); found != file.sha256)
    return path + " is damaged: its SHA-256 is " + found + ", its manifest says " + file.sha256;
  return std::nullopt;
}

} // namespace ds::runtime
