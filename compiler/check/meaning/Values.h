//===- Values.h - the values of the reference program, by what they are ----===//
#pragma once

#include "compiler/check/meaning/Broadcast.h"
#include "compiler/check/meaning/Spread.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::check {

namespace proto = plan::proto;

/// What a value is made of that micro-batches have each their own of; what is made of several has the last of these.
enum class Follows {
  Nothing, ///< variables and constants; a sum over micro-batches, too
  State,   ///< what a step's micro-batches leave to each other
  Samples  ///< samples, or numbers that are drawn
};

/// Elements of a value, whatever shape it is seen in.
struct ValueType {
  proto::DType dtype = proto::DTYPE_UNSPECIFIED;   ///< unspecified: zeros, which are the same bytes in every type
  std::optional<uint64_t> elements = std::nullopt; ///< none: as many as are read, for all are one number
  Follows follows = Follows::Nothing;
};

/// Numbers values so that two have one number exactly if they are the same op with the same attributes of the same
/// values: a forward pass has one set of values, whether it stands in a step or in an evaluation. Reshapes keep the
/// value, as they keep the bytes. Where a tensor broadcasts, how its elements repeat is part of the value
/// (Broadcast.h). Cf. value numbering (Alpern, Wegman, Zadeck, 1988).
class Values {
public:
  static constexpr uint32_t unknown = 0; ///< nothing is known: equals everything
  static constexpr uint32_t other = 1;   ///< parts of several values, or not from a value's first byte: equals nothing

  explicit Values(const proto::Plan &plan);

  uint32_t of(uint32_t referenceValue) const { return numbers_[referenceValue]; }
  /// What lies in a variable: a step finds the old version, and its update leaves another.
  enum class Version {
    Old,
    Updated,
    ByOne ///< what an update makes that takes 1 for the factor of its gradient, where that is another
  };
  /// Of which a rank has all, or a part, as the variable is placed.
  uint32_t variable(uint32_t index, Version version = Version::Old) {
    const uint32_t whole = wholeVariable(index, version);
    return index == noVariable ? whole : placedAs(index, whole);
  }
  uint32_t wholeVariable(uint32_t index, Version version = Version::Old);
  static constexpr uint32_t noVariable = UINT32_MAX; ///< stands for one where a bucket has none: its padding
  struct Held {
    uint32_t variable;
    Version version;
    auto operator<=>(const Held &) const = default;
  };
  /// The variable that a value is, and in which version.
  std::optional<Held> heldIn(uint32_t value) const {
    while (const Placed *placed = placedIn(value))
      value = placed->whole;
    const auto it = held_.find(value);
    return it == held_.end() ? std::nullopt : std::optional(it->second);
  }
  /// What a micro-batch stores in a variable; unknown where it stores nothing.
  uint32_t storedIn(uint32_t variable) const {
    const auto it = stored_.find(variable);
    return it == stored_.end() ? unknown : it->second;
  }
  uint32_t input(std::string_view name, ValueType type);
  /// Of a type; zero is the same in all of them.
  uint32_t constant(double value, proto::DType dtype);
  uint32_t zero() { return constant(0, proto::DTYPE_UNSPECIFIED); }
  uint32_t padding() { return variable(noVariable); }
  bool isPadding(uint32_t value) const { return heldIn(value) && heldIn(value)->variable == noVariable; }
  uint32_t incremented(uint32_t value);
  /// What lies in a variable that takes each micro-batch, in `each` changes, after the first `count` changes of a run.
  uint32_t withFirst(uint32_t variable, uint64_t count, uint64_t each);
  /// A sum that a run makes, before it does.
  uint32_t ofRunBefore(uint32_t variable);
  /// A value's elements as another type holds them: what train.cast makes of them.
  uint32_t converted(uint32_t value, proto::DType dtype);
  /// What a conversion has made this of; itself, of other values.
  uint32_t unconverted(uint32_t value) const {
    const auto it = conversions_.find(value);
    return it == conversions_.end() ? value : it->second;
  }
  /// What a rank has of a value that those along an axis share.
  struct Placed {
    uint32_t whole;
    Spread spread;
  };
  uint32_t placed(uint32_t value, const Spread &spread);
  /// A value seen as [first, second, inner], laid out as [second, first, inner]: its parts one behind another, where
  /// each is one of `second`.
  uint32_t exchanged(uint32_t value, uint64_t first, uint64_t second, uint64_t inner);
  /// What the parts that this many ranks along an axis have are, one behind another, and the sums of squares of parts;
  /// nothing where `value` is neither, or where ranks have the same part.
  std::optional<uint32_t> sideBySide(uint32_t value, uint32_t axis, uint64_t ranks);
  /// As a variable is placed: what a rank has of a value of its shape.
  uint32_t placedAs(uint32_t variable, uint32_t value);
  /// The last axis along which it is shared; null where it is not.
  const Placed *placedIn(uint32_t value) const {
    const auto it = placed_.find(value);
    return it == placed_.end() ? nullptr : &it->second;
  }
  /// The sum over some axes of terms along these; nothing where along one of them it is no sum's.
  std::optional<uint32_t> addedUp(uint32_t value, plan::AxisSet axes);
  uint32_t summedOverRanks(uint32_t value); ///< where the reference program sums nothing
  /// Of a value that each rank has its own of, that of "the first rank" or "another rank".
  uint32_t ofRank(uint32_t value, const std::string &whose);
  /// The sums of the squares of each `block` of that many elements, to the end of the last block of 1024.
  uint32_t squares(uint32_t value, int64_t block, uint64_t elements);
  struct Squared {
    uint32_t value;
    uint64_t block, elements;
  };
  std::optional<Squared> squaredBy(uint32_t value) const {
    const auto it = squares_.find(value);
    return it == squares_.end() ? std::nullopt : std::optional(it->second);
  }
  /// The value whose parts' sums of squares these are, each part's once.
  std::optional<uint32_t> squaresOfAll(uint32_t value) const {
    const auto it = squaresOfAll_.find(value);
    return it == squaresOfAll_.end() ? std::nullopt : std::optional(it->second);
  }
  /// The value whose squares these are the sums of, in blocks or of all parts.
  std::optional<uint32_t> squaresOf(uint32_t value) const {
    const std::optional<Squared> squared = squaredBy(value);
    return squared ? std::optional(squared->value) : squaresOfAll(value);
  }
  /// A value of shape `from` that is used where one of shape `to` is meant, as in NumPy.
  uint32_t broadcast(uint32_t value, std::span<const int64_t> from, std::span<const int64_t> to);
  /// An instruction of an elementwise program (kernels/ElementwiseProgram.h) other than a constant; operands are
  /// broadcast already to the result, which has that many elements. Terms and factors have no order: the bits are the
  /// same.
  uint32_t apply(int64_t opcode, proto::DType dtype, std::span<const uint32_t> operands, uint64_t elements);

  /// Whether values are what `total` is the sum of, in whatever order it is added up: the same terms, each as often. If
  /// not `whole`, whether they are among these.
  bool addUp(std::span<const uint32_t> values, uint32_t total, bool whole) const;

  /// What people call it: "the result of h.0/attn", "lm_head.weight", "0.25".
  const std::string &name(uint32_t value) const { return names_[value]; }
  const ValueType &type(uint32_t value) const { return types_[value]; }

private:
  /// A tensor that repeats.
  struct Repeated {
    uint32_t value;
    Runs runs;
  };
  /// [first, second, inner] of a value, laid out as [second, first, inner].
  struct Exchanged {
    uint32_t value;
    uint64_t first, second, inner;
    bool is(uint64_t a, uint64_t b, uint64_t c) const { return first == a && second == b && inner == c; }
  };

  uint32_t number(const std::string &key, const std::string &name, const ValueType &type);
  uint32_t made(const std::string &how, uint32_t value, const std::string &name);
  std::optional<uint32_t> numberGiven(const proto::ReferenceOp &op, const proto::ReferenceValue &result);
  std::optional<uint32_t> numberComputed(const proto::ReferenceOp &op, const proto::ReferenceValue &result);
  uint32_t numberResult(const proto::ReferenceOp &op, int result);
  void numberSum(const proto::ReferenceOp &accumulate);
  uint32_t numberConstant(uint32_t variable);
  std::string keyOf(const proto::ReferenceOp &op, int result) const;
  Follows followedBy(std::span<const uint32_t> values) const;

  const proto::Plan &plan_;
  std::set<uint32_t> carried_;                                  // variables (isCarried)
  std::map<std::string, uint32_t> known_;                       // by what it is
  std::map<std::pair<uint64_t, int>, uint32_t> constants_;      // by their bits and type
  std::map<uint32_t, uint32_t> literals_;                       // by checksum: the first variable that has it
  std::map<uint32_t, uint32_t> stored_;                         // by variable
  std::map<Held, uint32_t> variables_;                          // by what it is
  std::map<uint32_t, Held> held_;                               // by number; of constants, which no step changes, none
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> additions_; // by sum: its terms
  std::map<uint32_t, uint32_t> conversions_;                    // by result
  std::map<uint32_t, Repeated> repeated_;                       // by number
  std::map<uint32_t, Squared> squares_;                         // by number
  std::map<uint32_t, uint32_t> squaresOfAll_;                   // by number
  std::map<uint32_t, Exchanged> exchanged_;                     // by number
  std::map<uint32_t, Placed> placed_;                           // by number
  std::vector<std::string> names_;                              // by number
  std::vector<ValueType> types_;                                // by number
  std::vector<uint32_t> numbers_;                               // by reference value
};

/// `value` as an element of the type holds it.
double rounded(double value, int64_t dtype);

uint64_t elementsIn(std::span<const int64_t> shape);
/// The shape of a message that has one, and its type.
template <typename Message> std::span<const int64_t> shapeOf(const Message &message) {
  return {message.shape().data(), size_t(message.shape_size())};
}
template <typename Message> ValueType typeOf(const Message &message) {
  return {message.dtype(), elementsIn(shapeOf(message))};
}

} // namespace ds::check
