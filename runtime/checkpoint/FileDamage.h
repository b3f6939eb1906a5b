//===- FileDamage.h - whether a checkpoint's files are as they were written -===//
#pragma once

#include "runtime/checkpoint/Manifest.h"

#include <optional>
#include <string>

namespace ds::runtime {

/// What is wrong with a file of checkpoint `folder` as far as that is seen without reading it: it is not there, or has
/// another size. A sentence without its end, or nothing. Throws ds::Error if it cannot be opened.
std::optional<std::string> visibleDamage(const std::string &folder, const Manifest::File &file);

/// Reads the file too, and compares its SHA-256 with the manifest's.
std::optional<std::string> damage(const std::string &folder, const Manifest::File &file);

} // namespace ds::runtime
