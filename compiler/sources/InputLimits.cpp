//===- InputLimits.cpp - which values an integer input may hold -----------===//
#include "compiler/sources/InputLimits.h"

#include "compiler/sources/ReferenceOps.h"
#include "core/Error.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>

namespace ds::sources {
namespace {

namespace proto = plan::proto;

/// Values in [0, below), and a label that counts for nothing.
struct Limit {
  int64_t below = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> ignored;
  bool isKnown = true; ///< all readers look rows up, or only move elements
};

class Readers {
public:
  explicit Readers(const proto::Plan &plan) : plan_(plan) {}

  Limit limitOf(const std::string &input) {
    std::set<uint32_t> made;
    for (const proto::ReferenceOp &op : plan_.reference().ops())
      made.insert(op.results().begin(), op.results().end());
    for (int value = 0; value < plan_.reference().values_size(); ++value)
      if (plan_.reference().values(value).name() == input && !made.contains(uint32_t(value)))
        follow(uint32_t(value));
    return limit_;
  }

private:
  void follow(uint32_t value) {
    for (const proto::ReferenceOp &op : plan_.reference().ops())
      if (op.function() == "microbatch")
        for (int i = 0; i < op.operands_size(); ++i)
          if (op.operands(i) == value)
            read(op, i);
  }

  void read(const proto::ReferenceOp &op, int operand) {
    const std::string name = op.op().substr(op.op().find('.') + 1);
    const auto isOneOf = [&](std::initializer_list<const char *> names) { return std::ranges::count(names, name) > 0; };
    if (isOneOf({"reshape", "transpose", "slice", "pad", "broadcast"}))
      follow(op.results(0));
    else if (isOneOf({"gather", "gather_elements"}) && operand == 1)
      narrow(dim(op.operands(0), int(numberOf(op, "axis"))));
    else if (name == "cross_entropy" && operand == 1) {
      narrow(attributeOf(op, "classes") ? int64_t(numberOf(op, "classes")) : dim(op.operands(0), 1));
      limit_.ignored = int64_t(numberOf(op, "ignore_index"));
    } else if (!isOneOf({"cross_entropy_grad", "gather_grad", "equal"}))
      limit_.isKnown = false;
  }

  void narrow(int64_t below) { limit_.below = std::min(limit_.below, below); }
  int64_t dim(uint32_t value, int axis) const { return plan_.reference().values(int(value)).shape(axis); }

  const proto::Plan &plan_;
  Limit limit_;
};

} // namespace

void requireLimit(const proto::Plan &plan, const proto::Input &input) {
  const Limit limit = Readers(plan).limitOf(input.name());
  const bool isLimited = (input.dtype() == proto::DTYPE_I64 || input.dtype() == proto::DTYPE_I32) && limit.isKnown &&
                         limit.below != std::numeric_limits<int64_t>::max();
  const uint64_t below = isLimited ? uint64_t(limit.below) : 0;
  const std::optional<int64_t> ignored = isLimited ? limit.ignored : std::nullopt;
  const auto text = [](uint64_t limited, const std::optional<int64_t> &label) {
    return (limited == 0 ? "any value" : "values below " + std::to_string(limited)) +
           (label ? ", and label " + std::to_string(*label) + " for nothing" : "");
  };
  const std::optional<int64_t> has = input.has_ignored() ? std::optional(input.ignored()) : std::nullopt;
  if (input.limit() != below || has != ignored)
    throw Error("input " + input.name() + " may hold " + text(input.limit(), has) +
                " in the plan, but by what its reference program does with it " + text(below, ignored));
}

} // namespace ds::sources
