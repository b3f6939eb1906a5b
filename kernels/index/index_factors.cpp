// What splitting lookups and searches does. A part of a table knows where it begins, and has 0 for the rows of others;
// what else indices point along is whole.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void gatherFactors(FactorWriter &to) {
  const bool isGradient = to.call.hasOperand("ddata");
  const char *const table = isGradient ? "ddata" : "data", *const taken = isGradient ? "dy" : "y";
  const size_t axis = to.call.axis(to.call.shape(table));
  const Dimensions data = to.each(table);
  if (!isGradient)
    to.setKind(data[axis], FactorKind::Sum);
  for (size_t factor : data[axis])
    to.map.factors[factor].isPlaced = true;
  const Dimensions indices = to.each("indices", isGradient ? FactorKind::Sum : FactorKind::Pass);
  Dimensions rows(data.begin(), data.begin() + int64_t(axis));
  rows.insert(rows.end(), indices.begin(), indices.end());
  rows.insert(rows.end(), data.begin() + int64_t(axis) + 1, data.end());
  to.set(taken, rows);
}

/// Of gather_elements and scatter_elements, whose indices may be of fewer places than data.
void elementIndexFactors(FactorWriter &to) {
  const Call &call = to.call;
  const size_t axis = call.axis(call.shape("data"));
  const Dimensions data = to.each("data");
  Dimensions indices = data;
  for (size_t d = 0; d < data.size(); ++d)
    if (const int64_t size = call.shape("indices")[d]; d == axis || size != call.shape("data")[d]) {
      to.setKind(data[d], FactorKind::Whole);
      indices[d] = {to.factor(size, FactorKind::Whole)};
    }
  to.set("indices", indices);
  if (!call.hasOperand("updates")) {
    to.setKind(indices[axis], FactorKind::Pass);
    to.set("y", indices);
    return;
  }
  const std::string &reduction = call.text("reduction"); // others would count data once a part, or depend on order
  if (reduction == "max" || reduction == "min")
    to.setKind(indices[axis], reduction == "max" ? FactorKind::Max : FactorKind::Min);
  to.set("updates", indices);
  to.set("y", data);
}

void argMaxFactors(FactorWriter &to) {
  Dimensions dimensions = to.each("x");
  const auto axis = dimensions.begin() + int64_t(to.call.axis(to.call.shape("x")));
  to.setKind(*axis, FactorKind::Whole);
  dimensions.erase(axis);
  to.set("y", dimensions);
}

} // namespace ds::kernels
