// What splitting a kernel that moves does: dimensions that stay as they are pass.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void transposeFactors(FactorWriter &to) {
  const Dimensions x = to.each("x");
  Dimensions y;
  for (int64_t axis : to.call.integers("perm"))
    y.push_back(x[size_t(axis)]);
  to.set("y", y);
}

/// Of x and y with one rank, whose elements move along a dimension unless it has one size and begins and steps so.
static void movedFactors(FactorWriter &to, const char *starts, const char *steps, int64_t step) {
  const Shape &x = to.call.shape("x");
  const std::vector<int64_t> start = to.call.integers(starts), stride = to.call.integers(steps);
  const Dimensions from = to.each("x");
  Dimensions y = from;
  for (size_t d = 0; d < x.size(); ++d)
    if (const int64_t size = to.call.shape("y")[d]; size != x[d] || start[d] != 0 || stride[d] != step) {
      to.setKind(from[d], FactorKind::Moved);
      y[d] = {to.factor(size, FactorKind::Moved)};
    }
  to.set("y", y);
}

void sliceFactors(FactorWriter &to) { movedFactors(to, "starts", "steps", 1); }
void padFactors(FactorWriter &to) { movedFactors(to, "low", "interior", 0); }

void concatFactors(FactorWriter &to) {
  const size_t inputs = to.call["y"];
  const size_t axis = to.call.axis(to.call.shape("y"));
  const Dimensions y = to.each("y");
  if (inputs > 1)
    to.setKind(y[axis], FactorKind::Moved);
  for (size_t i = 0; i < inputs; ++i) {
    Dimensions x = y;
    if (inputs > 1)
      x[axis] = {to.factor(to.call.shape(i)[axis], FactorKind::Moved)};
    to.set(i, x);
  }
}

} // namespace ds::kernels
