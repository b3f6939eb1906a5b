//===- WeightForms.h - how an initializer may follow from a parameter ---------===//
#pragma once

#include "core/DType.h"
#include "core/Shape.h"

#include <optional>
#include <string>
#include <vector>

namespace ds::import {

enum class Form { Same, Reshaped, Transposed, Repeated, Rows, PlusOne };

struct Match {
  std::string parameter;
  Form form = Form::Same;
  std::vector<int64_t> rows = {}; // Form::Rows
};

struct Elements {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<char> bytes;
};

/// Whether an initializer of one shape may be the transpose of a parameter of another, going by shapes.
bool mayBeTransposed(const Shape &initializer, const Shape &parameter);
/// Whether it may be repeated, consist of rows, or be what is added to 1.
bool mayBeComputed(const Shape &initializer, const Shape &parameter);

/// How the values of an initializer follow from those of a parameter; nothing where they do not.
std::optional<Match> compare(const Elements &initializer, const Elements &parameter, const std::string &name);

} // namespace ds::import
