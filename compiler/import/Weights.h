//===- Weights.h - where the elements of initializers lie ---------------------===//
#pragma once

#include "compiler/import/Constant.h"
#include "compiler/import/files/Files.h"
#include "compiler/import/files/WireScan.h"
#include "core/DType.h"
#include "core/Shape.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ds::import {

/// The elements of a tensor: a range of a file, or here.
struct TensorData {
  std::string path;                // relative to the model's folder, as the model names it; empty: `literal` holds all
  uint64_t offset = 0, length = 0; // bytes
  std::vector<char> literal;       // little-endian, row-major; a bool takes a byte
  std::string dtype = {};          // as stored ("BF16"), if it is widened to the variable's type; else empty
};

/// Finds and reads the elements of one model's tensors: inside the model file, in external data files beside it, in a
/// safetensors file. All of them are checked for existence, bounds and size when they are located.
class WeightFiles {
public:
  /// `modelBytes` is the model file's content, which must outlive this.
  WeightFiles(std::filesystem::path modelPath, std::span<const char> modelBytes);

  /// Throws Failure where the tensor's data is missing, ambiguous, out of bounds or not as long as its shape says.
  TensorData locate(const onnx::TensorProto &tensor, const std::optional<InlineData> &data, DType dtype,
                    const std::string &what);
  /// Whether the safetensors files have a tensor of the name.
  bool hasTensor(const std::string &name) const { return entries_.count(name) != 0; }
  /// A tensor that they have; elements of floats of fewer bits than `dtype` will do. `parameter` is the model's name.
  TensorData locateInSafetensors(const std::string &name, const std::string &parameter, DType dtype,
                                 const Shape &shape) const;
  /// One more name of a tensor that they have.
  void addName(const std::string &name, const std::string &tensor) { entries_.emplace(name, entries_.at(tensor)); }
  /// A safetensors file, the index of several (model.safetensors.index.json), or a folder that holds one of the two.
  void openSafetensors(const std::string &path);
  /// The tensors of the safetensors files: ONNX's number of the type, and the shape.
  std::map<std::string, std::pair<int, Shape>> safetensors() const;

  /// The elements as `dtype`.
  std::vector<char> read(const TensorData &data, DType dtype);

private:
  struct Entry {
    std::string path; // as in TensorData
    std::string dtype;
    Shape shape;
    uint64_t offset = 0, length = 0; // bytes from the file's start
  };
  void openSafetensorsFile(const std::string &path);
  void openSafetensorsIndex(const std::string &path);
  void readSafetensorsHeader(const std::string &header, uint64_t dataBegin, uint64_t dataBytes, const std::string &path,
                             const std::string &stored);
  std::shared_ptr<InputFile> external(const std::string &location);
  TensorData externalData(const onnx::TensorProto &tensor, uint64_t bytes, const std::string &what);

  std::filesystem::path modelPath_, folder_;
  std::span<const char> modelBytes_;
  std::map<std::string, std::shared_ptr<InputFile>> files_; // by path, as in TensorData
  std::map<std::string, Entry> entries_;
};

/// The elements of a small tensor inside the model, such as a Constant's; throws Failure as WeightFiles::locate does.
std::vector<char> literalElements(const onnx::TensorProto &tensor, DType dtype, const std::string &what);
/// Such a tensor, whose elements are charged to the budget.
Constant literalConstant(const onnx::TensorProto &tensor, const std::string &what, FoldBudget &budget);

} // namespace ds::import
