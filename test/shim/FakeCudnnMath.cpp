//===- FakeCudnnMath.cpp - attention and convolutions, one product at a time ===//
//
// Tensors of any strides become rows of doubles, and results are rounded once to their type. An engine that rounds its
// factors does so here, to `precision` bits; one that is noted nondeterministic gives other bits in each run.
//
//===----------------------------------------------------------------------===//
#include "kernels/BFloat16.h"
#include "kernels/Float16.h"
#include "test/shim/cudnn_frontend.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace cudnn_frontend::graph {

namespace {

using Dense = std::vector<double>; ///< row-major

constexpr double hidden = -std::numeric_limits<double>::infinity();

int64_t countOf(const Tensor_attributes &tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.dim)
    count *= size;
  return count;
}

/// Where element `i` of the row-major order lies.
int64_t placeOf(const Tensor_attributes &tensor, int64_t i) {
  int64_t place = 0;
  for (size_t d = tensor.dim.size(); d-- > 0; i /= tensor.dim[d])
    place += i % tensor.dim[d] * tensor.stride[d];
  return place;
}

double rounded(float value, int precision) {
  if (precision >= 24 || !std::isfinite(value))
    return value;
  const int dropped = 24 - precision;
  const uint32_t bits = std::bit_cast<uint32_t>(value) + (1u << (dropped - 1));
  return std::bit_cast<float>(bits >> dropped << dropped);
}

Dense loaded(const Tensor_attributes &tensor, const void *data, int precision) {
  Dense values(size_t(countOf(tensor)));
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t place = placeOf(tensor, int64_t(i));
    values[i] = rounded(tensor.type == DataType_t::FLOAT  ? static_cast<const float *>(data)[place]
                        : tensor.type == DataType_t::HALF ? float(static_cast<const ds::Float16 *>(data)[place])
                                                          : float(static_cast<const ds::BFloat16 *>(data)[place]),
                        precision);
  }
  return values;
}

void store(const Tensor_attributes &tensor, void *data, const Dense &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t place = placeOf(tensor, int64_t(i));
    if (tensor.type == DataType_t::FLOAT)
      static_cast<float *>(data)[place] = float(values[i]);
    else if (tensor.type == DataType_t::HALF)
      static_cast<ds::Float16 *>(data)[place] = ds::Float16(float(values[i]));
    else
      static_cast<ds::BFloat16 *>(data)[place] = ds::BFloat16(float(values[i]));
  }
}

/// The tensors of an operation by name; results begin as zeros.
using Values = std::map<std::string, Dense>;

/// Rows of q, of k and of v: queries and keys of each head of each batch.
struct Attention {
  explicit Attention(const Operation &op, const Values &values)
      : op(op), values(values), heads(op.at("q").dim[1]), queries(op.at("q").dim[2]), keys(op.at("k").dim[2]),
        depth(op.at("q").dim[3]), columns(op.at("v").dim[3]) {}

  int64_t rows() const { return op.at("q").dim[0] * heads; }
  /// The first element of row `row` that `head` (of all batches) reads of a tensor; heads may share one of k or v.
  int64_t rowOf(const char *name, int64_t head, int64_t row) const {
    const Numbers &dim = op.at(name).dim;
    return ((head / heads * dim[1] + head % heads / (heads / dim[1])) * dim[2] + row) * dim[3];
  }

  Dense scores(int64_t head, int64_t query) const {
    const double *q = &values.at("q")[size_t(rowOf("q", head, query))];
    Dense scores(size_t(keys), hidden);
    for (int64_t key = 0; key < keys; ++key) {
      if (op.attention.rightBound && key > query + *op.attention.rightBound)
        continue;
      const double *k = &values.at("k")[size_t(rowOf("k", head, key))];
      double product = 0;
      for (int64_t l = 0; l < depth; ++l)
        product += q[l] * k[l];
      scores[size_t(key)] = double(op.attention.scale) * product + bias(head, query, key);
    }
    return scores;
  }

  double bias(int64_t head, int64_t query, int64_t key) const {
    if (!op.has("bias"))
      return 0;
    const Numbers &dim = op.at("bias").dim;
    const int64_t plane = head / heads % dim[0] * dim[1] + head % heads % dim[1];
    return values.at("bias")[size_t((plane * queries + query) * keys + key)];
  }

  /// A row that sees no key has none of it.
  static double probability(double score, double logSum) { return score == hidden ? 0 : std::exp(score - logSum); }

  const Operation &op;
  const Values &values;
  int64_t heads, queries, keys, depth, columns;
};

void attend(const Operation &op, Values &values) {
  const Attention a(op, values);
  const Dense &v = values["v"];
  Dense &out = values["o"];
  for (int64_t head = 0; head < a.rows(); ++head)
    for (int64_t query = 0; query < a.queries; ++query) {
      const Dense scores = a.scores(head, query);
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (double score : scores)
        sum += a.probability(score, most);
      const double logSum = most + std::log(sum);
      for (int64_t key = 0; key < a.keys; ++key)
        for (int64_t c = 0; c < a.columns; ++c)
          out[size_t(a.rowOf("o", head, query) + c)] +=
              a.probability(scores[size_t(key)], logSum) * v[size_t(a.rowOf("v", head, key) + c)];
      if (op.has("stats"))
        values["stats"][size_t(head * a.queries + query)] = most == hidden ? hidden : logSum;
    }
}

void attendBackward(const Operation &op, Values &values) {
  const Attention a(op, values);
  const Dense &q = values["q"], &k = values["k"], &v = values["v"], &out = values["o"], &gradient = values["do"];
  Dense &dq = values["dq"], &dk = values["dk"], &dv = values["dv"];
  for (int64_t head = 0; head < a.rows(); ++head)
    for (int64_t query = 0; query < a.queries; ++query) {
      const Dense scores = a.scores(head, query);
      const auto atQ = size_t(a.rowOf("q", head, query)), atOut = size_t(a.rowOf("o", head, query));
      double delta = 0;
      for (size_t c = 0; c < size_t(a.columns); ++c)
        delta += out[atOut + c] * gradient[atOut + c];
      for (int64_t key = 0; key < a.keys; ++key) {
        const auto atK = size_t(a.rowOf("k", head, key)), atV = size_t(a.rowOf("v", head, key));
        const double p = a.probability(scores[size_t(key)], values["stats"][size_t(head * a.queries + query)]);
        double dp = 0;
        for (size_t c = 0; c < size_t(a.columns); ++c) {
          dp += gradient[atOut + c] * v[atV + c];
          dv[atV + c] += p * gradient[atOut + c];
        }
        const double ds = p * (dp - delta) * double(op.attention.scale);
        for (size_t l = 0; l < size_t(a.depth); ++l) {
          dq[atQ + l] += ds * k[atK + l];
          dk[atK + l] += ds * q[atQ + l];
        }
      }
    }
}

/// Numbers of three spatial dimensions; two have a first of one.
std::array<int64_t, 3> spatial(const Numbers &numbers, size_t skipped, int64_t first) {
  std::array<int64_t, 3> three{first, first, first};
  std::copy(numbers.begin() + long(skipped), numbers.end(), three.end() - long(numbers.size() - skipped));
  return three;
}

/// Calls visit(element of x, of w, of y) for each product of a convolution.
template <typename Visit> void forEachProduct(const Operation &op, Visit &&visit) {
  const Numbers &x = op.at("x").dim, &w = op.at("w").dim, &y = op.at("y").dim;
  const auto in = spatial(x, 2, 1), window = spatial(w, 2, 1), out = spatial(y, 2, 1);
  const auto low = spatial(op.conv.before, 0, 0), stride = spatial(op.conv.stride, 0, 1),
             dilation = spatial(op.conv.dilation, 0, 1);
  const int64_t filters = w[0] / (x[1] / w[1]); // of a group
  const auto placeOf = [&](size_t d, int64_t o, int64_t k) { return o * stride[d] + k * dilation[d] - low[d]; };
  const auto isIn = [&](size_t d, int64_t place) { return place >= 0 && place < in[d]; };
  for (int64_t tap = 0; tap < w[1] * window[0] * window[1] * window[2]; ++tap) {
    const int64_t k2 = tap % window[2], k1 = tap / window[2] % window[1], k0 = tap / window[2] / window[1] % window[0],
                  c = tap / window[2] / window[1] / window[0];
    for (int64_t row = 0; row < y[0] * y[1] * out[0] * out[1]; ++row) {
      const int64_t o1 = row % out[1], o0 = row / out[1] % out[0], filter = row / out[1] / out[0] % y[1],
                    sample = row / out[1] / out[0] / y[1];
      const int64_t i0 = placeOf(0, o0, k0), i1 = placeOf(1, o1, k1);
      if (!isIn(0, i0) || !isIn(1, i1))
        continue;
      const int64_t channel = filter / filters * w[1] + c;
      const int64_t xRow = (((sample * x[1] + channel) * in[0] + i0) * in[1] + i1) * in[2];
      const int64_t wAt = filter * w[1] * window[0] * window[1] * window[2] + tap;
      for (int64_t o2 = 0; o2 < out[2]; ++o2)
        if (const int64_t i2 = placeOf(2, o2, k2); isIn(2, i2))
          visit(size_t(xRow + i2), size_t(wAt), size_t(row * out[2] + o2));
    }
  }
}

void convolve(const Operation &op, Values &values) {
  Dense &x = values["x"], &w = values["w"], &y = values["y"];
  if (op.name == "conv_fprop")
    forEachProduct(op, [&](size_t atX, size_t atW, size_t atY) { y[atY] += x[atX] * w[atW]; });
  else if (op.name == "conv_dgrad")
    forEachProduct(op, [&](size_t atX, size_t atW, size_t atY) { x[atX] += y[atY] * w[atW]; });
  else
    forEachProduct(op, [&](size_t atX, size_t atW, size_t atY) { w[atW] += y[atY] * x[atX]; });
}

} // namespace

void compute(const Operation &op, const std::map<std::string, void *> &addresses, const Engine &engine) {
  static int64_t runs = 0; // work runs one at a time
  Values values;
  const auto isResult = [&](const std::string &name) { return std::ranges::count(op.results, name) > 0; };
  for (const auto &[name, tensor] : op.tensors)
    values[name] =
        isResult(name) ? Dense(size_t(countOf(*tensor))) : loaded(*tensor, addresses.at(name), engine.precision);
  op.name == "sdpa"            ? attend(op, values)
  : op.name == "sdpa_backward" ? attendBackward(op, values)
                               : convolve(op, values);
  const bool isDrawn = std::ranges::count(engine.notes, NumericalNote_t::NONDETERMINISTIC) > 0;
  for (const std::string &name : op.results) {
    if (isDrawn && runs++ % 2 == 1)
      for (double &value : values[name])
        value *= 1 + 0x1p-7;
    store(op.at(name), addresses.at(name), values[name]);
  }
}

} // namespace cudnn_frontend::graph
