//===- ChooseCuts.cpp - which parameters are cut, and where ------------------===//
#include "compiler/passes/tensor/ChooseCuts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

#include <string>
#include <utility>
#include <vector>

using namespace mlir;
using namespace ds;

namespace {

/// Parameters that are cut alike: their names differ in numbers alone, and they have one shape.
struct Kind {
  RankedTensorType type;
  SmallVector<StringAttr> parameters;
  SmallVector<Part> options; ///< the first: whole
  size_t chosen = 0;
};

class Search {
public:
  Search(ModuleOp module, PartSweep &sweep, int64_t ranks) : sweep_(sweep), ranks_(ranks) {
    llvm::StringMap<size_t> known; // looked up
    for (auto variable : module.getOps<train::VariableOp>())
      if (variable.getKind() == train::VariableKind::Parameter)
        add(variable, known);
    for (auto variable : module.getOps<train::VariableOp>()) // gradients and state are cut as their parameter is
      if (variable.getOf())
        kindOf_[variable.getSymNameAttr()] = kindOf_.lookup(variable.getOfAttr().getAttr());
  }

  Cuts run() {
    const double fromWhole = descend();
    const SmallVector<size_t> first = chosen();
    for (Kind &kind : kinds_)
      startWith(kind);
    if (fromWhole <= descend())
      for (auto [kind, option] : llvm::zip(kinds_, first))
        kind.chosen = option;
    Cuts cuts;
    for (Kind &kind : kinds_)
      for (StringAttr parameter : kind.parameters)
        if (kind.chosen != 0)
          cuts[parameter] = kind.options[kind.chosen];
    return cuts;
  }

private:
  /// What a byte of a matrix that a rank holds counts beside one that it sends: its gradient and state lie there too.
  static constexpr double held = 16;
  /// Runs of one dimension: no packed weight, gate beside up, the three of attention.
  static constexpr int64_t packed[] = {1, 2, 3};

  /// The name with one sign for each number.
  static std::string pattern(StringRef name) {
    std::string result;
    for (char c : name)
      if (!llvm::isDigit(c))
        result += c;
      else if (result.empty() || result.back() != '#')
        result += '#';
    return result;
  }

  void add(train::VariableOp variable, llvm::StringMap<size_t> &known) {
    const RankedTensorType type = variable.getTensorType();
    std::string key = pattern(variable.getSymName());
    for (int64_t size : type.getShape())
      key += " " + std::to_string(size);
    const auto [at, isNew] = known.try_emplace(key, kinds_.size());
    if (isNew) {
      kinds_.push_back({.type = type, .parameters = {}, .options = {Part::whole()}});
      for (int64_t d = 0; d < type.getRank() && type.getNumElements() > 0; ++d)
        for (int64_t runs : packed)
          if (const int64_t parts = runs * ranks_; type.getDimSize(d) % parts == 0 && type.getDimSize(d) > parts)
            kinds_.back().options.push_back(Part::cut(d, runs));
    }
    kinds_[at->second].parameters.push_back(variable.getSymNameAttr());
    kindOf_[variable.getSymNameAttr()] = at->second;
  }

  Part partOf(StringAttr variable) const {
    const auto kind = kindOf_.find(variable);
    return kind == kindOf_.end() ? Part::whole() : kinds_[kind->second].options[kinds_[kind->second].chosen];
  }

  SmallVector<size_t> chosen() const {
    return llvm::map_to_vector(kinds_, [](const Kind &kind) { return kind.chosen; });
  }

  /// Changes one kind after another as long as that is better; returns the objective.
  double descend() {
    double least = objective();
    while (improve(least))
      ;
    return least;
  }

  /// The second search begins with matrices that are cut along what their products keep.
  void startWith(Kind &kind) {
    if (kind.type.getRank() < 2)
      return;
    for (kind.chosen = 1; kind.chosen < kind.options.size(); ++kind.chosen)
      if (kind.options[kind.chosen].runs == 1 && isKept(kind))
        return;
    kind.chosen = 0;
  }

  bool isKept(const Kind &kind) {
    bool found = false, kept = false;
    const auto own = [&](StringAttr name) {
      const auto at = kindOf_.find(name);
      return at != kindOf_.end() && &kinds_[at->second] == &kind ? partOf(name) : Part::whole();
    };
    sweep_.run(own, [&](Operation *op, const PartDecision &decision) {
      if (found || !isa<train::MatmulOp>(op) || (!decision.cut && !decision.joins))
        return;
      found = true;
      kept = decision.results.front().isCut();
    });
    return kept;
  }

  double objective() {
    double bytes = sweep_.run([&](StringAttr name) { return partOf(name); });
    for (const Kind &kind : kinds_)
      if (kind.type.getRank() >= 2)
        bytes += held * double(kind.parameters.size()) * double(kind.type.getNumElements()) *
                 kind.type.getElementTypeBitWidth() / 8 / double(kind.options[kind.chosen].isCut() ? ranks_ : 1);
    return bytes;
  }

  /// Each kind in turn takes the best of its options; returns whether one has changed.
  bool improve(double &least) {
    bool changed = false;
    for (Kind &kind : kinds_) {
      size_t chosen = kind.chosen;
      for (kind.chosen = 0; kind.chosen < kind.options.size(); ++kind.chosen)
        if (const double now = objective(); now < least) {
          least = now;
          chosen = kind.chosen;
          changed = true;
        }
      kind.chosen = chosen;
    }
    return changed;
  }

  std::vector<Kind> kinds_;
  llvm::DenseMap<StringAttr, size_t> kindOf_; // looked up
  PartSweep &sweep_;
  int64_t ranks_;
};

} // namespace

Cuts ds::chooseCuts(ModuleOp module, PartSweep &sweep, int64_t ranks) { return Search(module, sweep, ranks).run(); }
