//===- ChooseRecompute.cpp - decide what the backward computes again ----------===//
#include "compiler/analysis/Cost.h"
#include "compiler/passes/ForwardChain.h"
#include "compiler/passes/Passes.h"
#include "compiler/passes/Recompute.h"
#include "compiler/scheduling/PartitionMethod.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

namespace ds {
#define GEN_PASS_DEF_CHOOSERECOMPUTE
#include "compiler/passes/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

struct ChooseRecompute : ds::impl::ChooseRecomputeBase<ChooseRecompute> {
  using ChooseRecomputeBase::ChooseRecomputeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    auto microbatch = symbols.lookup<func::FuncOp>("microbatch");
    if (!microbatch || !microbatch.getBody().hasOneBlock()) {
      module.emitError("needs @microbatch, of one block; see ds-verify-train-form");
      return signalPassFailure();
    }
    const ForwardChain chain(microbatch, symbols);
    if (!rules.empty()) {
      if (failed(checkRules()) || failed(followRules(chain)))
        signalPassFailure();
      return;
    }
    const std::vector<Layer> layers = layersOf(chain);
    const auto count = int64_t(layers.size());
    module->setAttr(recomputeLevelsAttribute, IntegerAttr::get(IntegerType::get(&getContext(), 64), 2 * count));
    // The first layers' values wait longest for their backward.
    const int64_t cheap = std::min(level.getValue(), count), whole = std::clamp<int64_t>(level - count, 0, count);
    for (int64_t i = 0; i < cheap; ++i)
      if (i < whole)
        markWhole(layers[size_t(i)], chain);
      else
        markCheap(layers[size_t(i)], chain);
  }

private:
  /// Units [begin, end).
  struct Layer {
    int64_t begin, end;
  };

  /// The model's layers but the last, whose backward comes at once; or as many runs of them as there are to be
  /// checkpoints.
  std::vector<Layer> layersOf(const ForwardChain &chain) const {
    scheduling::PartitionProblem problem = chain.problem();
    if (problem.check() || problem.units.empty())
      return {};
    std::vector<int64_t> begins = scheduling::layerBegins(problem);
    begins.push_back(int64_t(chain.units.size()));
    std::vector<Layer> layers;
    for (size_t i = 0; i + 1 < begins.size(); ++i)
      if (begins[i + 1] - begins[i] > 1)
        layers.push_back({begins[i], begins[i + 1]});
    if (!layers.empty() && layers.back().end == int64_t(chain.units.size()))
      layers.pop_back();
    if (checkpoints <= 0 || checkpoints >= int64_t(layers.size()))
      return layers;
    std::vector<Layer> runs;
    for (int64_t run = 0; run < checkpoints; ++run) {
      const auto first = size_t(run * int64_t(layers.size()) / checkpoints),
                 last = size_t((run + 1) * int64_t(layers.size()) / checkpoints - 1);
      runs.push_back({layers[first].begin, layers[last].end});
    }
    return runs;
  }

  static void mark(Operation *op) { op->setAttr(recomputeAttribute, UnitAttr::get(op->getContext())); }

  /// Whether an op may be done twice: it changes nothing, and what is repeated wherever it is needed is.
  static bool mayRepeat(Operation *op) { return isMemoryEffectFree(op) || isa<train::ReadOp>(op); }

  /// All but what later layers read.
  static void markWhole(const Layer &layer, const ForwardChain &chain) {
    for (int64_t i = layer.begin; i < layer.end; ++i) {
      Operation *op = chain.units[size_t(i)];
      const bool leaves = llvm::any_of(op->getResults(), [&](Value v) { return chain.lastUse(v) >= layer.end; });
      if (!leaves && mayRepeat(op))
        mark(op);
    }
  }

  /// What costs no product and follows from values that are kept anyway, so that nothing else has to be kept for it.
  static void markCheap(const Layer &layer, const ForwardChain &chain) {
    for (int64_t i = layer.begin; i < layer.end; ++i) {
      Operation *op = chain.units[size_t(i)];
      if (!mayRepeat(op) || productFlops(op) > 0 ||
          llvm::none_of(op->getResults(), [&](Value v) { return chain.isReadLater(v); }))
        continue;
      const bool atHand = llvm::all_of(op->getOperands(), [&](Value operand) {
        Operation *producer = underView(operand).getDefiningOp();
        return !producer || chain.isRepeated(producer) || producer->hasAttr(recomputeAttribute) ||
               chain.isReadLater(underView(operand));
      });
      if (atHand)
        mark(op);
    }
  }

  //===-- by name ------------------------------------------------------------------===//

  LogicalResult checkRules() {
    for (const std::string &rule : rules) {
      auto [pattern, what] = StringRef(rule).rsplit('=');
      std::string error;
      if (!llvm::Regex(pattern).isValid(error))
        return getOperation().emitError()
               << "deepstatic.recompute: \"" << pattern << "\" is no regular expression: " << error;
      if (what != "save" && what != "recompute")
        return getOperation().emitError() << "rules: \"" << rule << "\" must end in =save or =recompute";
    }
    return success();
  }

  /// The first rule that a unit's name matches.
  LogicalResult followRules(const ForwardChain &chain) {
    std::vector<std::pair<llvm::Regex, bool>> compiled;
    for (const std::string &rule : rules) {
      auto [pattern, what] = StringRef(rule).rsplit('=');
      compiled.emplace_back(llvm::Regex(pattern), what == "recompute");
    }
    std::vector<bool> matched(rules.size());
    for (Operation *op : chain.units) {
      const std::string name = train::locationName(op->getLoc());
      bool decided = false;
      for (auto [index, rule] : llvm::enumerate(compiled)) {
        if (!rule.first.match(name))
          continue;
        if (!decided && rule.second && mayRepeat(op))
          mark(op);
        matched[index] = decided = true;
      }
    }
    for (auto [rule, any] : llvm::zip(rules, matched))
      if (!any)
        return getOperation().emitError()
               << "deepstatic.recompute: \"" << StringRef(rule).rsplit('=').first
               << "\" matches the name of no op of the forward; ds-opt compile --emit grad shows them";
    return success();
  }
};

} // namespace
