//===- SplitMeaning.cpp - kernels on the parts that ranks of an axis have --===//
//
// A kernel on parts of values is the kernel on the whole values, as its row says of each dimension what cutting it does
// (kernels/Factors.h, which factors_test tries): a part of a result, a summand of it, or all of it. An example: of
// c = a b with a cut by columns and b by rows, each rank of the axis has a summand of c.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/meaning/Meaning.h"

#include "kernels/Factors.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ds::check {

namespace {

using kernels::FactorKind;

/// A factor of an operand that a cut of its value goes along, and the factor's own cut.
struct Along {
  size_t dimension, factor;
  Cut cut;
};

/// A call along one axis of the mesh: which of its factors are cut there, and how.
class AxisSplit {
public:
  AxisSplit(const proto::Plan &plan, const proto::Command &command, uint32_t axis)
      : plan_(plan), kernel_(command.kernel()), axis_(axis),
        op_(command.reference_size() > 0 ? &plan.reference().ops(int(command.reference(0))) : nullptr),
        map_(kernels::factorsOf(plan::invocationOf(kernel_))) {}

  /// An operand is cut: so are all that have the same factor.
  void add(int index, const Cut &cut, const std::string &name) {
    parts_.insert(size_t(index));
    const std::optional<Along> along = find(index, cut);
    if (!along)
      throw Mismatch{"operand " + std::to_string(index) + " holds " + name +
                     ", which is a part of none of its dimensions"};
    const kernels::Factor &factor = map_.factors[along->factor];
    if (!kernels::isSplit(factor.kind))
      throw Mismatch{"operand " + std::to_string(index) + " holds " + name + ", but kernel " + kernel_.kernel() +
                     " needs all along its dimension " + std::to_string(along->dimension)};
    if (const auto [known, isNew] = cuts_.try_emplace(along->factor, along->cut); !isNew && known->second != along->cut)
      throw Mismatch{"operand " + std::to_string(index) + " holds " + name +
                     ", which is cut at other places than the operand that it goes with"};
  }

  /// Whether an operand has elements along what is cut in others.
  bool isCut(int index) const {
    for (size_t d = 0; size_t(index) < map_.operands.size() && d < map_.operands[size_t(index)].size(); ++d)
      for (const size_t factor : map_.operands[size_t(index)][d])
        if (!broadcasts(index, d) && cuts_.contains(factor))
          return true;
    return false;
  }

  /// The command on whole values.
  proto::Command whole(proto::Command command) const {
    proto::KernelCommand &kernel = *command.mutable_kernel();
    for (size_t i = 0; i < map_.operands.size(); ++i)
      for (size_t d = 0; d < map_.operands[i].size(); ++d)
        for (const size_t factor : map_.operands[i][d])
          if (proto::Operand &operand = *kernel.mutable_operands(int(i)); !broadcasts(int(i), d))
            operand.set_shape(int(d), operand.shape(int(d)) * parts(factor));
    for (const auto &[factor, cut] : cuts_) {
      if (const std::string_view sized = map_.factors[factor].attribute; !sized.empty())
        for (proto::Attribute &attribute : *kernel.mutable_attributes())
          if (attribute.name() == sized)
            attribute.set_integer(attribute.integer() * parts(factor));
      if (map_.factors[factor].isPlaced)
        requirePlace(kernel, factor, cut);
    }
    clearPlace(kernel);
    return command;
  }

  /// What ranks have of a result of the command on whole values; nothing: all of it.
  std::optional<Spread> spreadOf(int index) const {
    std::optional<Spread> spread;
    for (const auto &[factor, cut] : cuts_) {
      std::optional<Spread> own;
      if (map_.has(size_t(index), factor))
        own = Spread{axis_, {}, cutOf(size_t(index), factor, cut)};
      else if (const auto kind = map_.factors[factor].kind; kind != FactorKind::Pass)
        own = Spread{axis_, reductionOf(kind, cut), {}};
      if (spread && own && *spread != *own)
        throw Mismatch{"operand " + std::to_string(index) + " would be cut twice along axis " + axisName()};
      spread = spread ? spread : own;
    }
    return spread;
  }

private:
  /// Of what only local sizes are known: a dimension of 1 of an operand that is no part.
  bool broadcasts(int index, size_t d) const {
    return shape(index)[d] == 1 && !parts_.contains(size_t(index)) && !isWritten(index);
  }
  bool isWritten(int index) const { return kernel_.operands(index).access() != proto::Operand::READ; }
  std::span<const int64_t> shape(int index) const { return shapeOf(kernel_.operands(index)); }
  const std::string &axisName() const { return plan_.world().axes(int(axis_)).name(); }

  proto::AxisPlacement::Reduction reductionOf(FactorKind kind, const Cut &cut) const {
    switch (kind) {
    case FactorKind::Sum:
      if (cut.repeat != 1)
        throw Mismatch{"kernel " + kernel_.kernel() + " makes terms of what " + std::to_string(cut.repeat) +
                       " neighbours along axis " + axisName() + " have alike, so their sum would count them as often"};
      return proto::AxisPlacement::SUM;
    case FactorKind::Max:
      return proto::AxisPlacement::MAX;
    case FactorKind::Min:
      return proto::AxisPlacement::MIN;
    default:
      throw Mismatch{"kernel " + kernel_.kernel() + " on parts along axis " + axisName() +
                     " makes means, which are no summands"};
    }
  }

  /// The dimension and factor of an operand that a cut of its value goes along. The same elements may be cut along
  /// several, as [2, 8] in rows is [1, 16] in halves: then that which makes the shape of the reference op's operand, or
  /// of one piece.
  std::optional<Along> find(int index, const Cut &cut) const {
    std::optional<Along> best;
    std::tuple<bool, bool, uint64_t> least;
    uint64_t outer = 1, inner = elementsIn(shape(index));
    for (size_t d = 0; size_t(index) < map_.operands.size() && inner > 0 && d < shape(index).size(); ++d)
      for (const size_t factor : map_.operands[size_t(index)][d]) {
        const auto size = uint64_t(map_.factors[factor].size);
        inner /= size;
        const Cut own{cut.outer / outer, cut.length, cut.inner / inner, cut.blocks, cut.repeat};
        const bool fits =
            cut.outer % outer == 0 && cut.inner % inner == 0 && own.outer * cut.kept() * own.inner == size;
        if (const std::tuple rank(!isExpected(index, d, cut), size == 1, own.outer); fits && (!best || rank < least)) {
          best = Along{d, factor, own.normalized()};
          least = rank;
        }
        outer *= size;
      }
    return best;
  }
  /// Whether an operand has the shape that the reference op says, once it is whole along dimension `d`.
  bool isExpected(int index, size_t d, const Cut &cut) const {
    if (!op_ || index >= op_->operands_size())
      return false;
    const std::span<const int64_t> own = shape(index),
                                   said = shapeOf(plan_.reference().values(int(op_->operands(index))));
    return own.size() == said.size() && uint64_t(own[d]) / cut.kept() * cut.length == uint64_t(said[d]);
  }

  /// A factor's cut, in a whole operand.
  Cut cutOf(size_t index, size_t factor, Cut cut) const {
    bool isBehind = false;
    for (const kernels::Dimension &factors : map_.operands[index])
      for (const size_t one : factors)
        if (one == factor)
          isBehind = true;
        else
          (isBehind ? cut.inner : cut.outer) *= uint64_t(wholeSize(one));
    return cut.normalized();
  }
  /// By how much a factor is longer in the whole call.
  int64_t parts(size_t factor) const {
    const auto cut = cuts_.find(factor);
    return cut == cuts_.end() ? 1 : int64_t(cut->second.length / cut->second.kept());
  }
  int64_t wholeSize(size_t factor) const { return map_.factors[factor].size * parts(factor); }

  static proto::Integers *integers(proto::KernelCommand &kernel, std::string_view name) {
    for (proto::Attribute &attribute : *kernel.mutable_attributes())
      if (attribute.name() == name && attribute.has_integers())
        return attribute.mutable_integers();
    return nullptr;
  }

  /// A kernel that goes by where elements lie says so: by `whole`, and by `first`, to which each rank adds its steps.
  /// Takes out what they say of this axis.
  void requirePlace(proto::KernelCommand &kernel, size_t factor, const Cut &cut) const {
    proto::Integers *all = integers(kernel, "whole"), *first = integers(kernel, "first");
    const auto placed = [](const kernels::Factor &one) { return one.isPlaced; };
    const auto entry = int(std::count_if(map_.factors.begin(), map_.factors.begin() + int64_t(factor), placed));
    const auto isOfAxis = [&](const proto::RankSteps &one) {
      const proto::Communicator &along = plan_.communicators(int(one.communicator()));
      return along.axes_size() == 1 && along.axes(0) == axis_ && entry < one.values_size();
    };
    if (all && first && entry < all->values_size() && entry < first->values_size() && cut.outer == 1 &&
        cut.blocks.size() == 1 && cut.repeat == 1)
      if (const auto steps = std::ranges::find_if(*first->mutable_rank_steps(), isOfAxis);
          steps != first->mutable_rank_steps()->end() && all->values(entry) == int64_t(cut.length * cut.inner) &&
          steps->values(entry) == int64_t(cut.blocks[0].stride * cut.inner) &&
          first->values(entry) == int64_t(cut.blocks[0].offset * cut.inner)) {
        steps->set_values(entry, 0);
        first->set_values(entry, 0);
        return;
      }
    throw Mismatch{"kernel " + kernel.kernel() + " goes by where elements lie, and its attributes do not say where " +
                   "the part of a rank along axis " + axisName() + " begins"};
  }

  /// Of a command that is the whole one, where it begins goes without saying.
  void clearPlace(proto::KernelCommand &kernel) const {
    const proto::Integers *all = integers(kernel, "whole"), *first = integers(kernel, "first");
    std::vector<int64_t> sizes;
    for (size_t factor = 0; factor < map_.factors.size(); ++factor)
      if (map_.factors[factor].isPlaced)
        sizes.push_back(wholeSize(factor));
    const auto isZero = [](const auto &values) { return std::ranges::count(values, 0) == values.size(); };
    if (!all || !first || !std::ranges::equal(all->values(), sizes) || !isZero(first->values()) ||
        !std::ranges::all_of(first->rank_steps(), [&](const auto &steps) { return isZero(steps.values()); }))
      return;
    auto &attributes = *kernel.mutable_attributes();
    const auto isPlace = [](const proto::Attribute &one) { return one.name() == "whole" || one.name() == "first"; };
    attributes.erase(std::remove_if(attributes.begin(), attributes.end(), isPlace), attributes.end());
  }

  const proto::Plan &plan_;
  const proto::KernelCommand &kernel_;
  const uint32_t axis_;
  const proto::ReferenceOp *const op_; // null: it names none
  const kernels::FactorMap map_;
  std::map<size_t, Cut> cuts_; // by factor: what of it a rank has
  std::set<size_t> parts_;     // operands that hold parts
};

} // namespace

/// The last axis along which an operand's value is spread.
std::optional<uint32_t> Meaning::splitAxis(std::span<const uint32_t> held) const {
  std::optional<uint32_t> axis;
  for (const uint32_t value : held)
    if (const Values::Placed *placed = values_.placedIn(value))
      axis = std::max(axis.value_or(0), placed->spread.axis);
  return axis;
}

/// Terms of sums can be copied and added; anything else is of the sums.
std::vector<Meaning::Result> Meaning::resultsOfTerms(const proto::Command &command, std::span<const uint32_t> held,
                                                     const Spread &spread) {
  const proto::KernelCommand &kernel = command.kernel();
  const bool isSum = isAddition(kernel) && spread.partial == proto::AxisPlacement::SUM;
  std::vector<uint32_t> whole;
  for (size_t i = 0; i < held.size(); ++i) {
    const Values::Placed *placed = values_.placedIn(held[i]);
    const bool isTerm = placed && placed->spread == spread;
    const bool isRead = kernel.operands(int(i)).access() != proto::Operand::WRITE;
    if (isRead && ((!isTerm && held[i] != values_.zero()) || (!isSum && !isCopy(kernel))))
      throw Mismatch{"operand " + std::to_string(i) + " holds " + values_.name(held[i]) + ", and kernel " +
                     kernel.kernel() + " takes no terms of a sum that no collective has added up"};
    whole.push_back(isTerm ? placed->whole : held[i]);
  }
  std::vector<Result> results = resultsOf(command, whole);
  for (Result &result : results)
    result = {values_.placed(result.value, spread), values_.placed(result.added, spread)};
  return results;
}

std::vector<Meaning::Result> Meaning::resultsOfParts(const proto::Command &command, std::span<const uint32_t> held,
                                                     uint32_t axis) {
  AxisSplit split(plan_, command, axis);
  std::vector<uint32_t> whole(held.begin(), held.end());
  for (size_t i = 0; i < held.size(); ++i)
    if (const Values::Placed *placed = values_.placedIn(held[i]); placed && placed->spread.axis == axis) {
      if (placed->spread.isPartial())
        return resultsOfTerms(command, held, placed->spread);
      split.add(int(i), placed->spread.cut, values_.name(held[i]));
      whole[i] = placed->whole;
    }
  for (size_t i = 0; i < held.size(); ++i)
    if (whole[i] == held[i] && held[i] > Values::other && values_.type(held[i]).elements && split.isCut(int(i)) &&
        command.kernel().operands(int(i)).access() != proto::Operand::WRITE)
      throw Mismatch{"operand " + std::to_string(i) + " holds " + values_.name(held[i]) +
                     ", where other operands hold parts along axis " + plan_.world().axes(int(axis)).name()};
  const proto::Command all = split.whole(command);
  std::vector<Result> results = resultsOf(all, whole);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].value != Values::unknown || results[i].added != Values::unknown)
      if (const std::optional<Spread> spread = split.spreadOf(int(i)))
        results[i] = {values_.placed(results[i].value, *spread), values_.placed(results[i].added, *spread)};
  return results;
}

} // namespace ds::check
