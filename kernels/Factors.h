//===- Factors.h - what splitting a call does ------------------------------===//
//
// Every dimension of every operand of a call is a product of factors, as in an einsum: those of c = a b are M, N and K.
// Cutting all dimensions that have a factor into equal parts along it gives smaller calls of the same kernel, and the
// factor's kind says how the results of the call follow from theirs. A row's shapes say its factors, or a function that
// it names (<family>_factors.cpp). Propagation, partition and checker may take them as axioms:
// test/unit/kernels/factors_test.cpp tries each. Cf. Shardy's op sharding rules.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ds::kernels {

class Call;

/// What becomes of the results where a factor is cut. A result that has the factor is cut as well, unless the kind is
/// one of the last three; of one that lacks it, a kind says what the parts' results are.
enum class FactorKind : uint8_t {
  Pass,   ///< the same as the whole's
  Sum,    ///< their sum is the whole's
  Mean,   ///< so is their mean
  Max,    ///< or their largest
  Min,    ///< or their smallest
  Whole,  ///< not to be cut: an element needs all along it, or its place along it
  Window, ///< a part needs elements of its neighbours, too
  Moved,  ///< an element of a result comes from another place of an operand
};

/// Whether calls of the parts make up the call.
constexpr bool isSplit(FactorKind kind) { return kind < FactorKind::Whole; }

struct Factor {
  int64_t size;
  FactorKind kind;
  std::string_view attribute = {}; ///< that has its size, and a part's in a part
  bool isPlaced = false;           ///< a part says, by attributes `whole` and `first`, where it lies
};

/// The factors of a dimension, by index, outermost first; none where it broadcasts. An inner one is cut as a whole
/// tensor's columns are: each part has its share of every run.
using Dimension = std::vector<size_t>;
using Dimensions = std::vector<Dimension>;

struct FactorMap {
  std::vector<Factor> factors;
  std::vector<Dimensions> operands; ///< without the workspace

  bool has(size_t operand, size_t factor) const;
};

/// The factors of a call that requireCall allows.
FactorMap factorsOf(const Invocation &invocation);

/// The call of one of `parts` parts along a factor, which divides its size; without workspace, and without code and
/// algorithm, which were made for other shapes. Attributes `whole` and `first` say where a part of a table lies, or
/// of a tensor of random numbers. All others stay as they are, but a factor's own.
Invocation partOf(const Invocation &invocation, const FactorMap &map, size_t factor, int64_t part, int64_t parts);

/// What a row's function fills.
class FactorWriter {
public:
  explicit FactorWriter(const Call &ofCall);

  size_t factor(int64_t size, FactorKind kind = FactorKind::Pass, std::string_view attribute = {});
  /// A factor for each dimension of an operand.
  Dimensions each(size_t operand, FactorKind kind = FactorKind::Pass);
  Dimensions each(std::string_view operand, FactorKind kind = FactorKind::Pass);
  /// The factors of an operand that broadcasts to a tensor of factors `dimensions`: sizes of 1 that repeat have none,
  /// and leading ones are left out.
  void set(size_t operand, const Dimensions &dimensions);
  void set(std::string_view operand, const Dimensions &dimensions);
  /// The kind of all factors of a dimension.
  void setKind(const Dimension &dimension, FactorKind kind);
  int64_t sizeOf(const Dimension &dimension) const;

  const Call &call;
  FactorMap map;
};

} // namespace ds::kernels
