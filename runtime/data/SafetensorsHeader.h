//===- SafetensorsHeader.h - the JSON part of a safetensors file ----------===//
#pragma once

#include "runtime/data/SafetensorsFile.h"

#include <map>
#include <string>
#include <string_view>

namespace ds::runtime {

struct SafetensorsHeader {
  std::map<std::string, SafetensorsFile::Tensor> tensors; ///< offsets relative to the header's end
  std::map<std::string, std::string> metadata;
};

/// Parses the JSON; checks its form and each entry's size against its shape. Throws ds::Error without the file's name.
SafetensorsHeader parseSafetensorsHeader(std::string_view json);

} // namespace ds::runtime
