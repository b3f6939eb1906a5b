//===- SafetensorsFile.h - reads safetensors files ------------------------===//
//
// u64 little-endian header length N, N bytes of JSON, then the data. Entries: {"dtype", "shape", "data_offsets":
// [begin, end)} relative to the header's end; `__metadata__` maps strings to strings. Strict, as files come from
// anywhere: the header has at most 100 MB, no key stands twice, the tensors cover the data without overlap, hole or
// rest, and sizes agree with shapes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/Shape.h"
#include "runtime/data/ReadOnlyFile.h"

#include <cstdint>
#include <map>
#include <string>

namespace ds::runtime {

class SafetensorsFile {
public:
  struct Tensor {
    std::string dtype; ///< the format's name: "F32", "I64", ...
    Shape shape;
    uint64_t offset = 0; ///< from the start of the file
    uint64_t bytes = 0;
  };

  /// Reads and checks the header; throws ds::Error beginning with the path.
  explicit SafetensorsFile(const std::string &path);

  const std::string &path() const { return file_.path(); }
  const ReadOnlyFile &file() const { return file_; }
  const std::map<std::string, Tensor> &tensors() const { return tensors_; }
  const std::map<std::string, std::string> &metadata() const { return metadata_; }
  /// The tensor, or nullptr.
  const Tensor *find(const std::string &name) const;

private:
  ReadOnlyFile file_;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Bytes of one element of a dtype of the format; 0 if there is none of that name.
uint64_t safetensorsElementBytes(const std::string &dtype);

} // namespace ds::runtime
