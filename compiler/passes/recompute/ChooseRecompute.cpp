//===- ChooseRecompute.cpp - decide what the backward computes again ----------===//
//
// 1. Layers: what lies between two positions of the forward where few bytes cross
//    (compiler/scheduling/PartitionMethod.h); no names are looked at.
// 2. For each layer, a frontier of choices between bytes kept and time repeated: minimum cuts for rising prices of a
//    byte in time (He and Zachariah, "Min-cut optimal(*) recomputation", 2022; compiler/scheduling/Recompute.h).
// 3. All layers' steps along their frontiers in the order of bytes freed for a second; level n takes the first n.
// `full` repeats whole layers instead (Chen et al., arXiv 1604.06174), and rules by name decide before anything
// else.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/Cost.h"
#include "compiler/analysis/ForwardChain.h"
#include "compiler/passes/recompute/Passes.h"
#include "compiler/passes/recompute/Recompute.h"
#include "compiler/scheduling/PartitionMethod.h"
#include "compiler/scheduling/Recompute.h"
#include "dialects/Train/LocationName.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <algorithm>
#include <cmath>

namespace ds {
#define GEN_PASS_DEF_CHOOSERECOMPUTE
#include "compiler/passes/recompute/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;
using scheduling::RecomputeRule;

bool llvm::cl::parser<RecomputeRule>::parse(llvm::cl::Option &option, StringRef, StringRef text, RecomputeRule &rule) {
  auto [pattern, what] = text.rsplit('=');
  if (what != "save" && what != "recompute")
    return option.error("\"" + text + "\" must end in =save or =recompute");
  rule = {.modules = pattern.str(), .again = what == "recompute"};
  return false;
}

void llvm::cl::parser<RecomputeRule>::print(raw_ostream &stream, const RecomputeRule &rule) {
  stream << rule.modules << (rule.again ? "=recompute" : "=save");
}

namespace {

constexpr double picoseconds = 1e12; // in which problems of scheduling have their times

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
    if (full)
      for (const Layer &layer : layers)
        markWhole(layer, chain);
    const Levels levels = full ? Levels{} : followLevel(layers, chain);
    summarize(layers, levels, chain);
  }

private:
  /// Units [begin, end).
  struct Layer {
    int64_t begin, end;
  };

  /// The model's layers but the last, whose backward comes at once; with `full` as many runs of them as there are to be
  /// checkpoints.
  std::vector<Layer> layersOf(const ForwardChain &chain) const {
    const scheduling::PartitionProblem problem = chain.problem();
    if (problem.check() || problem.units.empty())
      return {};
    std::vector<int64_t> begins = scheduling::layerBeginsOfModel(problem);
    begins.push_back(int64_t(chain.units.size()));
    std::vector<Layer> layers;
    for (size_t i = 0; i + 1 < begins.size(); ++i)
      if (begins[i + 1] - begins[i] > 1)
        layers.push_back({begins[i], begins[i + 1]});
    if (!layers.empty() && layers.back().end == int64_t(chain.units.size()))
      layers.pop_back();
    if (!full || checkpoints <= 0 || checkpoints >= int64_t(layers.size()))
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

  /// What later layers read is kept.
  static bool leaves(Value value, const Layer &layer, const ForwardChain &chain) {
    return chain.lastUse(value) >= layer.end;
  }

  /// Whether an op may be done twice: it changes nothing, and no later layer reads it. A read that is a unit is of
  /// state that the forward changes, and would find the new value.
  static bool mayRepeat(Operation *op, const Layer &layer, const ForwardChain &chain) {
    return isMemoryEffectFree(op) && llvm::none_of(op->getResults(), [&](Value v) { return leaves(v, layer, chain); });
  }

  static void markWhole(const Layer &layer, const ForwardChain &chain) {
    for (int64_t i = layer.begin; i < layer.end; ++i)
      if (Operation *op = chain.units[size_t(i)]; mayRepeat(op, layer, chain))
        mark(op);
  }

  //===-- by level -----------------------------------------------------------------===//

  /// Whether a value that is no layer's to repeat would be kept for this layer alone: the residual stream in f32, of
  /// which the backward reads roundings.
  static bool isKeptForRepeating(Value value, const ForwardChain &chain) {
    Operation *op = value.getDefiningOp();
    return op && !isViewOfState(op) && !chain.isRepeated(op) && !chain.isReadLater(value);
  }

  /// A layer's units, the values that they make and end with it, and what is kept if it is read again. All others are
  /// at hand.
  static scheduling::RecomputeProblem problemOf(const Layer &layer, const ForwardChain &chain) {
    scheduling::RecomputeProblem problem;
    llvm::DenseMap<Value, int32_t> index;
    const auto add = [&](Value value, int32_t producer) {
      index[value] = int32_t(problem.values.size());
      problem.values.push_back({bytesOf(value), producer, chain.isReadLater(value)});
    };
    for (int64_t i = layer.begin; i < layer.end; ++i) {
      Operation *op = chain.units[size_t(i)];
      scheduling::RecomputeProblem::Op repeated{
          std::llround(seconds(op) * picoseconds), mayRepeat(op, layer, chain), {}};
      for (Value operand : op->getOperands()) {
        const Value value = underView(operand);
        if (!index.contains(value) && isKeptForRepeating(value, chain))
          add(value, -1);
        if (auto known = index.find(value); known != index.end())
          repeated.operands.push_back(known->second);
      }
      for (Value result : op->getResults())
        if (!leaves(result, layer, chain))
          add(result, int32_t(i - layer.begin));
      problem.ops.push_back(std::move(repeated));
    }
    return problem;
  }

  /// What a link to host memory has to do with each layer; nothing where what is kept stays in device memory.
  std::vector<scheduling::LinkedLayer> linksOf(const std::vector<Layer> &layers, const ForwardChain &chain) {
    const LinkSpeed link = linkSpeed(getOperation(), "device-host");
    if (!away || link.bytesPerSecond <= 0)
      return {};
    std::vector<scheduling::LinkedLayer> linked(layers.size());
    double left = 0; // seconds to the end of the forward
    size_t layer = layers.size();
    for (int64_t i = int64_t(chain.units.size()); i-- > 0 && layer > 0;) {
      Operation *op = chain.units[size_t(i)];
      left += seconds(op);
      for (Value result : op->getResults())
        if (chain.isReadLater(result) && (i >= layers[layer - 1].end || leaves(result, layers[layer - 1], chain)))
          linked[layer - 1].fixedBytes += bytesOf(result);
      if (i == layers[layer - 1].begin)
        linked[--layer].linkBytes = std::llround(left * link.bytesPerSecond);
    }
    return linked;
  }

  struct Levels {
    int64_t taken = 0, all = 0;
  };

  /// Whether a step from one choice to the next costs more than is asked for.
  bool isDear(const scheduling::RecomputeChoice &from, const scheduling::RecomputeChoice &to) const {
    return dearest > 0 && double(to.time - from.time) / picoseconds > dearest * double(from.bytes - to.bytes);
  }

  /// Marks what the level repeats, step by step: a choice repeats all that the one before it on its frontier does.
  Levels followLevel(const std::vector<Layer> &layers, const ForwardChain &chain) {
    std::vector<std::vector<scheduling::RecomputeChoice>> frontiers;
    std::vector<scheduling::RecomputeProblem> problems;
    for (const Layer &layer : layers) {
      problems.push_back(problemOf(layer, chain));
      const auto same = std::find(problems.begin(), problems.end() - 1, problems.back()); // a block is planned once
      frontiers.push_back(same != problems.end() - 1 ? frontiers[size_t(same - problems.begin())]
                                                     : scheduling::recomputeFrontier(problems.back()));
    }
    const std::vector<scheduling::RecomputeStep> steps = scheduling::recomputeSteps(frontiers, linksOf(layers, chain));
    Levels levels{0, int64_t(steps.size())};
    for (const scheduling::RecomputeStep &step : steps) {
      const std::vector<scheduling::RecomputeChoice> &frontier = frontiers[size_t(step.layer)];
      if (levels.taken == level || isDear(frontier[size_t(step.choice) - 1], frontier[size_t(step.choice)]))
        break;
      ++levels.taken;
      Builder b(&getContext());
      const Attribute value = numbered ? Attribute(b.getI64IntegerAttr(levels.taken)) : b.getUnitAttr();
      const std::vector<char> &before = frontier[size_t(step.choice) - 1].again;
      for (auto [offset, again] : llvm::enumerate(frontier[size_t(step.choice)].again))
        if (again && !before[offset])
          chain.units[size_t(layers[size_t(step.layer)].begin) + offset]->setAttr(recomputeAttribute, value);
    }
    return levels;
  }

  void summarize(const std::vector<Layer> &layers, Levels levels, const ForwardChain &chain) {
    const auto again = llvm::count_if(layers, [&](const Layer &layer) {
      return std::any_of(chain.units.begin() + layer.begin, chain.units.begin() + layer.end,
                         [](Operation *op) { return op->hasAttr(recomputeAttribute); });
    });
    getOperation()->setAttr(
        recomputeSummaryAttribute,
        train::RecomputeSummaryAttr::get(&getContext(), levels.taken, levels.all, again, int64_t(layers.size())));
  }

  //===-- by name ------------------------------------------------------------------===//

  LogicalResult checkRules() {
    for (const RecomputeRule &rule : rules)
      if (std::string error; !llvm::Regex(rule.modules).isValid(error))
        return getOperation().emitError()
               << "deepstatic.recompute: \"" << rule.modules << "\" is no regular expression: " << error;
    return success();
  }

  /// The first rule that a unit's name matches.
  LogicalResult followRules(const ForwardChain &chain) {
    std::vector<std::pair<llvm::Regex, bool>> compiled;
    for (const RecomputeRule &rule : rules)
      compiled.emplace_back(llvm::Regex(rule.modules), rule.again);
    std::vector<bool> matched(rules.size());
    for (Operation *op : chain.units) {
      const std::string name = train::locationName(op->getLoc());
      bool decided = false;
      for (auto [index, rule] : llvm::enumerate(compiled)) {
        if (!rule.first.match(name))
          continue;
        if (!decided && rule.second && isMemoryEffectFree(op))
          mark(op);
        matched[index] = decided = true;
      }
    }
    for (auto [rule, any] : llvm::zip(rules, matched))
      if (!any)
        return getOperation().emitError()
               << "deepstatic.recompute: \"" << rule.modules
               << "\" matches the name of no op of the forward; ds-opt compile --emit grad shows them";
    return success();
  }
};

} // namespace
