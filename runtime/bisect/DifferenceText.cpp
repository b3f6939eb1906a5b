//===- DifferenceText.cpp - what --bisect says ----------------------------===//
#include "runtime/bisect/DifferenceText.h"

#include "core/DType.h"
#include "core/Shape.h"
#include "kernels/Numbers.h"
#include "runtime/bisect/Comparison.h"
#include "runtime/bisect/Tensor.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

using plan::proto::Plan;

template <typename T> T elementAs(const std::byte *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// So many digits that other bits give another text.
std::string valueText(DType dtype, const std::byte *bytes) {
  std::array<char, 32> text;
  if (dtype == DType::F32)
    std::snprintf(text.data(), text.size(), "%.9g", double(elementAs<float>(bytes)));
  else if (dtype == DType::F64)
    std::snprintf(text.data(), text.size(), "%.17g", elementAs<double>(bytes));
  else if (isNarrowFloat(dtype))
    kernels::withNarrowFloat(dtype, [&](auto zero) {
      std::snprintf(text.data(), text.size(), "%.9g", double(elementAs<decltype(zero)>(bytes)));
    });
  else if (dtype == DType::I64)
    std::snprintf(text.data(), text.size(), "%" PRId64, elementAs<int64_t>(bytes));
  else if (dtype == DType::I32 || dtype == DType::U32)
    std::snprintf(text.data(), text.size(), "%" PRId32, elementAs<int32_t>(bytes));
  else
    std::snprintf(text.data(), text.size(), "%u", unsigned(elementAs<uint8_t>(bytes)));
  return text.data();
}

std::string indexText(uint64_t flat, const Shape &shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= uint64_t(shape[i]))
    index[i] = int64_t(flat % uint64_t(shape[i]));
  return toString(index);
}

/// "kernel matmul", "reduce_scatter": what a command does.
std::string kindOf(const plan::proto::Command &command) {
  if (command.has_kernel())
    return "kernel " + command.kernel().kernel();
  return command.has_collective() ? plan::proto::CollectiveCommand::Kind_Name(command.collective().kind()) : "feed";
}

std::string writerText(const Plan &plan, const Piece &piece) {
  const Writer &writer = piece.writer;
  std::string text = "rank " + std::to_string(writer.rank);
  if (writer.routine != Writer::none) {
    const plan::proto::Routine &routine = plan::roleOfRank(plan, writer.rank).routines(int(writer.routine));
    text += ", routine " + routine.name() + ", command " + std::to_string(writer.command) + " (" +
            kindOf(routine.commands(int(writer.command))) + ")";
  }
  return text + (piece.count < piece.elements ? ", elements " + std::to_string(piece.first) + " to " +
                                                    std::to_string(piece.first + piece.count - 1)
                                              : "");
}

/// The tensor in the user's names, and its shape.
struct Title {
  std::string text;
  Shape shape;
};

template <typename Message> Title titled(const std::string &text, const Message &typed) {
  const Shape shape(typed.shape().begin(), typed.shape().end());
  return {text + ", " + std::string(name(DType(typed.dtype()))) + toString(shape), shape};
}

/// `plan`: A, whose numbers keys have.
Title titleOf(const TensorKey &key, const Plan &plan) {
  const std::string micro = "step " + std::to_string(key.step) + ", micro-batch " + std::to_string(key.microbatch);
  if (key.phase == TensorKey::End)
    return titled((key.step == 0 ? "before the first step" : "after step " + std::to_string(key.step)) + ", variable " +
                      plan.variables(int(key.index)).name(),
                  plan.variables(int(key.index)));
  if (key.op == TensorKey::input)
    return titled(micro + ", input " + plan.inputs(int(key.index)).name(), plan.inputs(int(key.index)));
  const plan::proto::ReferenceOp &op = plan.reference().ops(int(key.op));
  const std::string where = (key.phase == TensorKey::Update ? "step " + std::to_string(key.step) + ", update" : micro) +
                            ", " + op.op() + (op.name().empty() ? "" : " " + op.name());
  if (key.isVariable)
    return titled(where + ", variable " + plan.variables(int(key.index)).name(), plan.variables(int(key.index)));
  return titled(where + ", result " + std::to_string(key.index + 1) + " of " + std::to_string(op.results_size()),
                plan.reference().values(int(op.results(int(key.index)))));
}

std::string count(uint64_t number, const char *what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

} // namespace

std::string textOf(const Comparison &comparison) {
  const std::string compared = count(comparison.equal, "tensor");
  return (comparison.difference ? compared + " before it are equal" : "no difference among " + compared) + "; " +
         std::to_string(comparison.inPieces) + " were compared in pieces, " + std::to_string(comparison.inOnePlan) +
         " exist in one plan only\n";
}

std::string textOf(const Difference &difference, const std::array<const Plan *, 2> &plans,
                   const std::array<std::string, 2> &paths, const TensorBytes &one, const TensorBytes &other) {
  const Title title = titleOf(difference.key, *plans[0]);
  const auto size = size_t(byteSize(one.dtype));
  const size_t elements = std::min(one.bytes.size(), other.bytes.size()) / size;
  uint64_t different = 0, first = 0;
  for (size_t i = elements; i-- > 0;)
    if (std::memcmp(one.bytes.data() + i * size, other.bytes.data() + i * size, size) != 0) {
      first = i;
      ++different;
    }
  std::string text = "first difference: " + title.text + "\n";
  const auto holds = [&](const Difference::Side &side, uint64_t element) { // which piece of the side has the element
    return *std::ranges::find_if(side.pieces, [&](const Piece &piece) { return element < piece.first + piece.count; });
  };
  for (const Difference::Side *side : {&difference.one, &difference.other})
    text += std::string("  ") + "AB"[side->plan] + ": " +
            writerText(*plans[size_t(side->plan)], holds(*side, one.first + first)) + ", of " +
            paths[size_t(side->plan)] + "\n";
  if (different == 0)
    return text + "  a second run did not show it: one of the plans does not compute the same bits each time\n";
  return text + "  element " + indexText(one.first + first, title.shape) + ": " +
         valueText(one.dtype, one.bytes.data() + first * size) + " in " + "AB"[difference.one.plan] + ", " +
         valueText(other.dtype, other.bytes.data() + first * size) + " in " + "AB"[difference.other.plan] + "; " +
         std::to_string(different) + " of " + count(elements, "element") + " differ\n";
}

} // namespace ds::runtime
