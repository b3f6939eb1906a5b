//===- WeightValues.h - values of initializers beside those of weights --------===//
#pragma once

#include "compiler/import/Weights.h"
#include "compiler/import/match/WeightForms.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

namespace ds::import {

/// Reads initializers of a model and tensors of --weights to compare them. Checksums are compared first, and of values
/// at most one initializer and one tensor are held.
class WeightValues {
public:
  WeightValues(const ScannedModel &model, WeightFiles &files);

  bool isFloat(const std::string &initializer) const;
  Shape shapeOf(const std::string &initializer) const;

  /// By name: ONNX's number of the type, and the shape.
  const std::map<std::string, std::pair<int, Shape>> &tensors() const { return tensors_; }
  bool has(const std::string &tensor) const { return tensors_.count(tensor) != 0; }
  /// One more name of a tensor.
  void addName(const std::string &name, const std::string &tensor);

  /// How an initializer follows from a tensor; `moved`: only by the same values, in order or transposed.
  std::optional<Match> match(const std::string &initializer, const std::string &tensor, bool moved);
  /// Whether two tensors have one type, shape and values.
  bool areEqual(const std::string &a, const std::string &b);
  bool isZeros(const std::string &tensor);
  bool isSines(const std::string &tensor);

private:
  /// Equal values have equal sums.
  struct Sums {
    uint32_t inOrder = 0;
    uint64_t anyOrder = 0;
  };
  static Sums sumsOf(const Elements &elements);

  const onnx::TensorProto &protoOf(const std::string &initializer) const;
  std::optional<DType> typeOf(const std::string &tensor) const;
  const Elements &read(const std::string &initializer);
  Elements readTensor(const std::string &tensor);
  const Sums &sumsOfInitializer(const std::string &initializer);
  const Sums &sumsOfTensor(const std::string &tensor);

  const ScannedModel &model_;
  WeightFiles &files_;
  std::map<std::string, int> initializers_; // name -> index
  std::map<std::string, std::pair<int, Shape>> tensors_;
  std::map<std::string, Sums> sums_, tensorSums_;
  std::string held_; // the initializer whose elements are here
  Elements elements_;
};

} // namespace ds::import
