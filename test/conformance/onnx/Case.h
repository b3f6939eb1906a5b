//===- Case.h - the cases of ONNX's conformance suite ------------------------===//
//
// <kind>/<case>/model.onnx with test_data_set_0/{input,output}_<i>.pb, as libonnx-testdata has them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/files/onnx.pb.h"
#include "core/DType.h"
#include "core/Shape.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ds::test {

/// A named tensor with its elements, little-endian and row-major; a bool takes a byte.
struct HostTensor {
  std::string name;
  DType dtype = DType::F32;
  Shape shape;
  std::vector<char> bytes;
};

/// A model with the values of its inputs and what its outputs must be.
struct Case {
  /// Inputs that an operator of the model needs while compiling (shapes, axes, counts) are initializers of `model`; the
  /// others have the shape of their value.
  onnx::ModelProto model;
  std::vector<HostTensor> inputs, outputs;
};

/// Throws ds::Error, saying why, where the folder holds values that are no tensors of a type that we have.
Case loadCase(const std::filesystem::path &folder);

/// The names of the cases in a folder, sorted.
std::vector<std::string> caseNames(const std::filesystem::path &kind);

/// Empty, or how `actual` differs from `expected`: other type or shape, or a float further off than 1e-7 + 1e-3 of what
/// is expected (of 16 bits, and two units in the last place), or another integer.
std::string difference(const HostTensor &actual, const HostTensor &expected);

} // namespace ds::test
