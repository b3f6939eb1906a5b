//===- SplitMeaning.cpp - kernels on the parts that ranks of an axis have --===//
//
// A kernel on parts of values is the kernel on the whole values, as its row says of each dimension what cutting it does
// (kernels/Factors.h, which factors_test tries): a part of a result, a summand of it, or all of it. An example: of
// c = a b with a cut by columns and b by rows, each rank of the axis has a summand of c.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/meaning/Meaning.h"

#include "compiler/check/meaning/PartPlace.h"
#include "compiler/check/meaning/ReferenceOps.h"
#include "kernels/Factors.h"
#include "kernels/KernelRows.h"
#include "runtime/plan/run/Invocations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
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

  /// An operand is cut.
  void add(int index, const Cut &cut, const std::string &name) {
    Held &held = held_.emplace_back(Held{index, name, find(index, cut)});
    if (held.places.empty())
      throw Mismatch{"operand " + std::to_string(index) + " holds " + name +
                     ", which is a part of none of its dimensions"};
  }

  /// So are all that have the same factor. Of an operand that may be cut along several, as heads that share their keys
  /// are by groups or within one, it is that along which another is.
  void settle() {
    std::ranges::stable_sort(held_, {}, [](const Held &held) { return held.places.size(); });
    for (const Held &held : held_) {
      const auto isKnown = [&](const Along &along) {
        const auto known = cuts_.find(along.factor);
        return known != cuts_.end() && known->second == along.cut;
      };
      const auto shared = std::ranges::find_if(held.places, isKnown);
      addAlong(held, shared == held.places.end() ? held.places.front() : *shared);
    }
  }

  /// A kernel that says where its rank's part begins is on parts of that, though none of its operands may be.
  void addPlaced() {
    const proto::RankSteps *steps = stepsAlong(plan_, kernel_, axis_);
    for (size_t factor = 0; steps && factor < map_.factors.size(); ++factor)
      if (const int entry = entryOf(factor);
          map_.factors[factor].isPlaced && entry < steps->values_size() && steps->values(entry) != 0)
        cuts_.try_emplace(factor,
                          Cut::inParts(1, plan_.world().axes(int(axis_)).size(), uint64_t(map_.factors[factor].size)));
  }

  /// Where elements move along a dimension that is cut, the result is cut there, too: where they have come to.
  void addMoved() {
    for (const auto &[operand, factor] : std::map(parts_))
      if (map_.factors[factor].kind == FactorKind::Moved)
        isSlice() ? addSlice(factor) : addConcat(dimensionOf(operand, factor));
  }

  /// Whether an operand has elements along what is cut in others.
  bool isCut(int index) const {
    const auto own = parts_.find(size_t(index));
    for (size_t d = 0; size_t(index) < map_.operands.size() && d < map_.operands[size_t(index)].size(); ++d)
      for (const size_t factor : map_.operands[size_t(index)][d])
        if (!broadcasts(index, d) && cuts_.contains(factor) && (own == parts_.end() || own->second != factor))
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
      if (map_.factors[factor].isPlaced && !takeOutPlace(plan_, kernel, axis_, entryOf(factor), cut))
        throw noPlace();
    }
    if (stepsAlong(plan_, kernel, axis_))
      throw noPlace();
    clearPlace(kernel, placedSizes());
    for (const auto &[d, first] : starts_)
      for (proto::Attribute &attribute : *kernel.mutable_attributes())
        if (attribute.name() == "starts")
          attribute.mutable_integers()->set_values(int(d), int64_t(first));
    return command;
  }

  /// What ranks have of a result of the command on whole values; nothing: all of it.
  std::optional<Spread> spreadOf(int index) const {
    std::optional<Spread> spread;
    for (const auto &[factor, cut] : cuts_) {
      std::optional<Spread> own;
      if (map_.has(size_t(index), factor))
        own = Spread{axis_, {}, cutOf(size_t(index), factor, cut)};
      else if (const auto kind = map_.factors[factor].kind; kind != FactorKind::Pass && kind != FactorKind::Moved)
        own = Spread{axis_, reductionOf(kind, cut), {}};
      if (spread && own && *spread != *own)
        throw Mismatch{"operand " + std::to_string(index) + " would be cut twice along axis " + axisName()};
      spread = spread ? spread : own;
    }
    return spread;
  }

private:
  /// An operand that holds a part, and what it may be cut along.
  struct Held {
    int index;
    std::string name;
    std::vector<Along> places;
  };

  /// Of what only local sizes are known: a dimension of 1 of an operand that is no part.
  bool broadcasts(int index, size_t d) const {
    return shape(index)[d] == 1 && !parts_.contains(size_t(index)) && !isWritten(index);
  }
  Mismatch noPlace() const {
    return {"kernel " + kernel_.kernel() + " goes by where elements lie, and its attributes do not say where the " +
            "part of a rank along axis " + axisName() + " begins"};
  }

  void addAlong(const Held &held, const Along &along) {
    const std::string holds = "operand " + std::to_string(held.index) + " holds " + held.name;
    parts_[size_t(held.index)] = along.factor;
    if (!mayBeCut(along))
      throw Mismatch{holds + ", but kernel " + kernel_.kernel() + " needs all along its dimension " +
                     std::to_string(along.dimension)};
    if (const auto [known, isNew] = cuts_.try_emplace(along.factor, along.cut); !isNew && known->second != along.cut)
      throw Mismatch{holds + ", which is cut at other places than the operand that it goes with"};
  }

  bool isSlice() const { return kernel_.kernel() == kernels::kernel<"slice">.name; }
  bool isConcat() const { return kernel_.kernel() == kernels::kernel<"concat">.name; }

  size_t dimensionOf(size_t operand, size_t factor) const {
    size_t d = 0;
    while (std::ranges::count(map_.operands[operand][d], factor) == 0)
      ++d;
    return d;
  }

  /// Of y = x[starts + i * steps].
  void addSlice(size_t factor) {
    const size_t d = dimensionOf(0, factor);
    const uint64_t first = uint64_t(attributeOf(kernel_, "starts")->integers().values(int(d))),
                   size = uint64_t(shape(1)[d]);
    const bool isDense = attributeOf(kernel_, "steps")->integers().values(int(d)) == 1;
    const std::optional<Cut::Slice> slice = isDense ? cuts_.at(factor).slice(first, size) : std::nullopt;
    if (!slice)
      throw Mismatch{"elements " + std::to_string(first) + " to " + std::to_string(first + size - 1) +
                     " of dimension " + std::to_string(d) + " of what each rank along axis " + axisName() +
                     " has are no part of any slice of the whole"};
    starts_[d] = slice->first;
    cuts_.try_emplace(map_.operands[1][d][0], slice->cut);
  }

  /// Of the inputs side by side along dimension `d`.
  void addConcat(size_t d) {
    const size_t inputs = map_.operands.size() - 1;
    std::vector<Cut> cuts;
    for (size_t i = 0; i < inputs; ++i)
      if (const auto cut = cuts_.find(map_.operands[i][d][0]); cut != cuts_.end())
        cuts.push_back(cut->second);
    const std::optional<Cut> all = cuts.size() == inputs ? Cut::concat(cuts) : std::nullopt;
    if (!all)
      throw Mismatch{"not all inputs of kernel concat are cut for the ranks along axis " + axisName() +
                     " along dimension " + std::to_string(d)};
    cuts_.try_emplace(map_.operands[inputs][d][0], *all);
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

  /// The dimensions and factors of an operand that a cut of its value may go along, the likeliest first. The same
  /// elements may be cut along several, as [2, 8] in rows is [1, 16] in halves: then those that make the shape of the
  /// reference op's operand, if any do, and first where there is one piece.
  std::vector<Along> find(int index, const Cut &cut) const {
    std::vector<Along> places;
    bool isAnyExpected = false;
    uint64_t outer = 1, inner = elementsIn(shape(index));
    for (size_t d = 0; size_t(index) < map_.operands.size() && inner > 0 && d < shape(index).size(); ++d)
      for (const size_t factor : map_.operands[size_t(index)][d]) {
        const auto size = uint64_t(map_.factors[factor].size);
        inner /= size;
        const Cut own{cut.outer / outer, cut.length, cut.inner / inner, cut.blocks, cut.repeat};
        const bool fits =
            cut.outer % outer == 0 && cut.inner % inner == 0 && own.outer * cut.kept() * own.inner == size;
        const bool expected = isExpected(index, d, cut);
        if (fits && expected && !std::exchange(isAnyExpected, true))
          places.clear();
        if (fits && expected == isAnyExpected)
          places.push_back({d, factor, own.normalized()});
        outer *= size;
      }
    // Of rows that each rank has one of, an element is a part of the row as well; the kernel may need rows whole.
    if (std::ranges::any_of(places, [&](const Along &along) { return mayBeCut(along); }))
      std::erase_if(places, [&](const Along &along) { return !mayBeCut(along); });
    std::ranges::stable_sort(places, {}, [&](const Along &along) {
      return std::tuple(map_.factors[along.factor].size == 1, along.cut.outer);
    });
    return places;
  }
  bool mayBeCut(const Along &along) const {
    const FactorKind kind = map_.factors[along.factor].kind;
    return kernels::isSplit(kind) || (kind == FactorKind::Moved && (isSlice() || isConcat()));
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

  /// By placed factor, of the whole call.
  std::vector<int64_t> placedSizes() const {
    std::vector<int64_t> sizes;
    for (size_t factor = 0; factor < map_.factors.size(); ++factor)
      if (map_.factors[factor].isPlaced)
        sizes.push_back(wholeSize(factor));
    return sizes;
  }
  /// How many placed factors there are before one.
  int entryOf(size_t factor) const {
    const auto placed = [](const kernels::Factor &one) { return one.isPlaced; };
    return int(std::count_if(map_.factors.begin(), map_.factors.begin() + int64_t(factor), placed));
  }

  const proto::Plan &plan_;
  const proto::KernelCommand &kernel_;
  const uint32_t axis_;
  const proto::ReferenceOp *const op_; // null: it names none
  const kernels::FactorMap map_;
  std::vector<Held> held_;
  std::map<size_t, Cut> cuts_;        // by factor: what of it a rank has
  std::map<size_t, size_t> parts_;    // by operand that holds parts: the factor that is cut
  std::map<size_t, uint64_t> starts_; // by dimension: where a slice of the whole begins
};

} // namespace

/// The last axis along which an operand's value is spread, or the call itself.
std::optional<uint32_t> Meaning::splitAxis(const proto::KernelCommand &kernel, std::span<const uint32_t> held) const {
  std::optional<uint32_t> axis;
  const proto::Attribute *first = attributeOf(kernel, "first");
  for (uint32_t a = 0; first && a < uint32_t(plan_.world().axes_size()); ++a)
    if (stepsAlong(plan_, kernel, a) && !plan::batchAxes(plan_).contains(a))
      axis = a;
  for (const uint32_t value : held)
    if (const Values::Placed *placed = values_.placedIn(value))
      axis = std::max(axis.value_or(0), placed->spread.axis);
  return axis;
}

/// Terms of sums can be moved, added and subtracted, others only copied; anything else is of the sums.
std::vector<Meaning::Result> Meaning::resultsOfTerms(const proto::Command &command, std::span<const uint32_t> held,
                                                     const Spread &spread) {
  const proto::KernelCommand &kernel = command.kernel();
  const bool mayTake = isCopy(kernel) || (isLinear(kernel) && spread.partial == proto::AxisPlacement::SUM);
  std::vector<uint32_t> whole;
  for (size_t i = 0; i < held.size(); ++i) {
    const Values::Placed *placed = values_.placedIn(held[i]);
    const bool isTerm = placed && placed->spread == spread;
    const bool isRead = kernel.operands(int(i)).access() != proto::Operand::WRITE;
    if (isRead && (!mayTake || (!isTerm && held[i] != values_.zero())))
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
  split.settle();
  split.addPlaced();
  split.addMoved();
  for (size_t i = 0; i < held.size(); ++i)
    if (held[i] > Values::other && values_.type(held[i]).elements && split.isCut(int(i)) &&
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
