//===- MemoryFigure.h - a program's memory as a drawing -------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace ds::report {

/// Categories from the bottom of the stack to its top: what is resident, then what comes and goes.
constexpr std::array<plan::proto::Buffer::Category, 8> stackOrder = {
    plan::proto::Buffer::WEIGHTS,   plan::proto::Buffer::OPTIMIZER,    plan::proto::Buffer::GRADIENTS,
    plan::proto::Buffer::CONSTANTS, plan::proto::Buffer::INPUTS,       plan::proto::Buffer::ACTIVATIONS,
    plan::proto::Buffer::WORKSPACE, plan::proto::Buffer::COMMUNICATION};

/// "k4": the style of a category.
std::string styleOf(plan::proto::Buffer::Category category);

struct FigureSize {
  size_t columns; // of the stack, at most
  size_t tiles;   // of the arena, at most
};

/// A <figure> of one program of a role: above, bytes alive by category over time; below, the arena's addresses over the
/// same time. Beside the SVG it holds the stack's numbers as JSON: {"left", "width" (of the drawing), "kinds",
/// "columns":
/// [[instant in words, bytes of each kind ...] ...]}.
std::string memoryFigure(const plan::proto::Plan &plan, const plan::proto::Role &role, int program,
                         std::string_view space, FigureSize size);

} // namespace ds::report
