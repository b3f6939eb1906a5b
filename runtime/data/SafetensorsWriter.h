//===- SafetensorsWriter.h - writes safetensors files ---------------------===//
#pragma once

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Shape.h"

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {

/// An element type of the format: one of ours, or one by its name that no plan has, as "F16".
struct StoredDType {
  std::string name;
  StoredDType(DType dtype);
  StoredDType(std::string formatName) : name(std::move(formatName)) {}
};

/// A tensor to be written and where its bytes come from.
struct TensorToWrite {
  std::string name;
  StoredDType dtype;
  Shape shape;
  /// Hands all bytes to `sink`, in order, in pieces of any size.
  std::function<void(const std::function<void(std::span<const std::byte>)> &sink)> produce;
};

/// The format's name of an element type: "F32".
const char *safetensorsName(DType dtype);

/// Writes the file whole or not at all: tensors in the order given, the header padded so that data begins at a multiple
/// of 8 bytes. `written`, if any, is told every byte of the file in order. Throws ds::Error naming the path.
void writeSafetensors(const std::string &path, const std::vector<TensorToWrite> &tensors,
                      const std::map<std::string, std::string> &metadata,
                      const std::function<void(std::span<const std::byte>)> &written = {},
                      AtomicFile::Cache cache = AtomicFile::Cache::Cached);

} // namespace ds::runtime
