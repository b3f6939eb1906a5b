//===- Sampling.cpp - an image read at places that are computed (GridSample) ----------------------------===//
//
// Each result is a sum over a few elements around its place, weighted by distance. They are gathered by whole numbers,
// which have no gradient; the weights have one, so that the grid learns, too. Cf. torch.nn.functional.grid_sample.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

namespace ds::import::ops {
namespace {

/// An element along one dimension: where it lies, a whole number in a float that may be outside, and what it counts.
struct Tap {
  Value place, weight; // [batch, 1, points]
};

class Sampler {
public:
  Sampler(Node &node, const Value &input, const Value &grid);
  Value run();

private:
  Value coordinate(size_t dim) const;
  Value padded(const Value &x, int64_t size) const;
  std::vector<Tap> tapsOf(size_t dim) const;
  void add(size_t dim, const Value &index, const Value &weight, const Value &inside);

  Node &node_;
  Algebra math_;
  Value image_, grid_; // [batch, channels, pixels], [batch, points, dimensions]
  Shape spatial_, after_;
  std::string mode_, padding_;
  bool alignCorners_;
  std::vector<std::vector<Tap>> taps_; // by dimension
  Value sum_;
};

Sampler::Sampler(Node &node, const Value &input, const Value &grid)
    : node_(node), math_(node), mode_(node.stringAttr("mode", node.opset() < 20 ? "bilinear" : "linear")),
      padding_(node.stringAttr("padding_mode", "zeros")), alignCorners_(node.integerAttr("align_corners", 0) != 0) {
  if (input.rank() < 4 || input.rank() > 5 || grid.rank() != input.rank() || grid.shape[0] != input.shape[0] ||
      grid.shape.back() != input.rank() - 2)
    throw Failure("the input " + toString(input.shape) +
                  " must have the dimensions N, C and two or three spatial ones, "
                  "and the grid " +
                  toString(grid.shape) + " N, as many and their number");
  if (mode_ == "bilinear" || mode_ == "bicubic")
    mode_ = mode_.substr(2);
  if (mode_ != "linear" && mode_ != "nearest" && mode_ != "cubic")
    throw Failure("mode '" + mode_ + "' is none of 'linear', 'nearest' and 'cubic'");
  if (padding_ != "zeros" && padding_ != "border" && padding_ != "reflection")
    throw Failure("padding_mode '" + padding_ + "' is none of 'zeros', 'border' and 'reflection'");
  spatial_.assign(input.shape.begin() + 2, input.shape.end());
  if (elementCount(spatial_) == 0)
    throw Failure("the input " + toString(input.shape) + " has no element to read");
  after_.assign(grid.shape.begin() + 1, grid.shape.end() - 1);
  image_ = reshape(node, input, {input.shape[0], input.shape[1], elementCount(spatial_)});
  grid_ = reshape(node, grid, {grid.shape[0], elementCount(after_), int64_t(spatial_.size())});
}

/// The place along a dimension in elements; the grid has it from -1 to 1, the last dimension first.
Value Sampler::coordinate(size_t dim) const {
  const auto size = double(spatial_[dim]);
  const Value part = sliceAlong(node_, grid_, 2, int64_t(spatial_.size() - 1 - dim), 1);
  const Value shifted = math_.add(reshape(node_, part, {grid_.shape[0], 1, grid_.shape[1]}), 1);
  if (alignCorners_)
    return math_.mul(shifted, (size - 1) / 2);
  return math_.div(math_.sub(math_.mul(shifted, size), 1), 2);
}

/// `x` brought inside, where the mode says so.
Value Sampler::padded(const Value &x, int64_t size) const {
  if (padding_ == "zeros")
    return x;
  Value inside = x;
  if (padding_ == "reflection") { // at the outer elements' centres, or at their edges
    const double low = alignCorners_ ? 0 : -0.5, span = double(size) - (alignCorners_ ? 1 : 0);
    if (span == 0)
      return math_.mul(x, 0);
    const Value distance = math_.abs(math_.sub(x, low));
    const Value flips = math_.floor(math_.div(distance, span));
    const Value rest = math_.sub(distance, math_.mul(flips, span));
    const Value half = math_.mul(flips, 0.5), isEven = math_.equal(math_.floor(half), half);
    const Value back = math_.sub(math_.number(x.dtype, span), rest);
    inside = math_.add(math_.choose(isEven, rest, back), low);
  }
  return math_.min(math_.max(inside, 0), double(size - 1));
}

std::vector<Tap> Sampler::tapsOf(size_t dim) const {
  const int64_t size = spatial_[dim];
  const Value x = mode_ == "cubic" ? coordinate(dim) : padded(coordinate(dim), size);
  if (mode_ == "nearest") {
    const Value place = unary<train::RoundOp>(node_, UnaryFold::Round, x);
    return {{place, broadcastTo(node_, math_.number(x.dtype, 1), x.shape)}};
  }
  const Value first = math_.floor(x), t = math_.sub(x, first);
  const Value rest = math_.sub(math_.number(x.dtype, 1), t);
  if (mode_ == "linear")
    return {{first, rest}, {math_.add(first, 1), t}};
  // Keys, "Cubic convolution interpolation for digital image processing", with PyTorch's a.
  constexpr double a = -0.75;
  auto near = [&](const Value &d) { // ((a + 2) d - (a + 3)) d d + 1
    return math_.add(math_.mul(math_.mul(math_.sub(math_.mul(d, a + 2), a + 3), d), d), 1);
  };
  auto far = [&](const Value &d) { // ((a d - 5 a) d + 8 a) d - 4 a
    return math_.sub(math_.mul(math_.add(math_.mul(math_.sub(math_.mul(d, a), 5 * a), d), 8 * a), d), 4 * a);
  };
  const Value weights[] = {far(math_.add(t, 1)), near(t), near(rest), far(math_.add(rest, 1))};
  std::vector<Tap> taps;
  for (int k = 0; k < 4; ++k)
    taps.push_back({padded(math_.add(first, double(k - 1)), size), weights[k]});
  return taps;
}

/// Goes through all combinations of taps; `index` is the row-major position in the dimensions before `dim`.
void Sampler::add(size_t dim, const Value &index, const Value &weight, const Value &inside) {
  if (dim == spatial_.size()) {
    const Shape shape{image_.shape[0], image_.shape[1], index.shape[2]};
    const mlir::Value image = node_.operand(image_), at = node_.operand(broadcastTo(node_, index, shape));
    Value read = Value::of(node_.create<train::GatherElementsOp>({image, at}, {node_.number("axis", 2)}).getResult());
    if (inside.kind != Value::Kind::Absent)
      read = math_.choose(inside, read, 0);
    const Value term = math_.mul(read, weight);
    sum_ = sum_.kind == Value::Kind::Absent ? term : math_.add(sum_, term);
    return;
  }
  const int64_t size = spatial_[dim];
  for (const Tap &tap : taps_[dim]) {
    const Value clamped = math_.min(math_.max(tap.place, 0), double(size - 1));
    const Value place = cast(node_, clamped, DType::I64);
    Value within = inside;
    if (padding_ == "zeros") {
      const Value isHere = math_.equal(clamped, tap.place);
      within = dim == 0 ? isHere : math_.both(inside, isHere);
    }
    if (dim == 0)
      add(dim + 1, place, tap.weight, within);
    else
      add(dim + 1, math_.add(math_.mul(index, double(size)), place), math_.mul(weight, tap.weight), within);
  }
}

Value Sampler::run() {
  for (size_t dim = 0; dim < spatial_.size(); ++dim)
    taps_.push_back(tapsOf(dim));
  add(0, {}, {}, {});
  Shape shape{image_.shape[0], image_.shape[1]};
  shape.insert(shape.end(), after_.begin(), after_.end());
  return reshape(node_, sum_, shape);
}

} // namespace

void gridSample(Node &node) { node.set(0, Sampler(node, node.floatIn(0), node.floatIn(1)).run()); }

/// Entry `i` of a dimension of `size`, from -1 to 1: of the outer elements' centres, or of their edges.
static double placeOf(int64_t i, int64_t size, bool alignCorners) {
  if (alignCorners)
    return size > 1 ? 2 * double(i) / double(size - 1) - 1 : 0;
  return (2 * double(i) + 1) / double(size) - 1;
}

/// The places of a grid moved by theta [N, d, d + 1]: theta (x, y, .., 1), the last dimension first.
void affineGrid(Node &node) {
  const Value theta = node.floatIn(0);
  const std::vector<int64_t> size = node.integers(1, "size");
  const int64_t dims = int64_t(size.size()) - 2;
  if (dims < 2 || dims > 3 || theta.shape != Shape{size[0], dims, dims + 1})
    throw Failure("theta " + toString(theta.shape) + " and the size " + toString(size) +
                  " must be [N, d, d + 1] and N, C and d = 2 or 3 dimensions");
  const Shape spatial(size.begin() + 2, size.end());
  const int64_t count = checkedElements(spatial, DType::F64, "the grid");
  node.budget().charge(count * (dims + 1));
  const bool alignCorners = node.integerAttr("align_corners", 0) != 0;
  std::vector<double> rows;
  for (int64_t point = 0; point < count; ++point) {
    int64_t rest = point;
    for (int64_t d = dims; d-- > 0; rest /= spatial[size_t(d)])
      rows.push_back(placeOf(rest % spatial[size_t(d)], spatial[size_t(d)], alignCorners));
    rows.push_back(1);
  }
  std::vector<char> bytes(rows.size() * sizeof(double));
  if (!bytes.empty())
    std::memcpy(bytes.data(), rows.data(), bytes.size());
  const Constant places = Constant::dense(DType::F64, {count, dims + 1}, std::move(bytes));
  const mlir::Value points = node.operand(Value::of(foldCast(places, theta.dtype, node.budget()))),
                    map = node.operand(theta);
  const auto transposed = node.builder().getNamedAttr("trans_b", node.builder().getUnitAttr());
  Shape shape = spatial;
  shape.insert(shape.begin(), size[0]);
  shape.push_back(dims);
  node.set(0, reshape(node, Value::of(node.create<train::MatmulOp>({points, map}, {transposed}).getResult()), shape));
}

} // namespace ds::import::ops
