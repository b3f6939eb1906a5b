//===- PartSweep.cpp - what a rank of axis tensor has of each value ----------===//
#include "compiler/passes/tensor/PartSweep.h"

#include "compiler/analysis/KernelSelection.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace ds;

/// What a byte that is read or written, and an operation of a product, count beside a byte that is sent. A rank is to
/// have its share of the products first of all: that is what axis tensor is for.
static constexpr double ofMemory = 0.1, ofProducts = 1;

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

static double bytesOf(Value value) {
  const RankedTensorType type = typeOf(value);
  return double(type.getNumElements()) * type.getElementTypeBitWidth() / 8;
}

/// Whether an op of terms has terms of its result.
static bool isLinear(Operation *op) {
  return isa<train::AddOp, train::SubOp, train::NegOp, train::TransposeOp, train::ReshapeOp>(op);
}

static bool isElementwise(Operation *op) { return op->hasTrait<train::Elementwise>() || isa<train::BroadcastOp>(op); }

/// Whether an op may run on parts. What no kernel computes, or works on variables where they lie, has no factors;
/// images and their statistics are not cut yet.
static bool hasFactors(Operation *op) {
  return op->getNumResults() > 0 &&
         !isa<train::ReadOp, train::ReshapeOp, train::ConstantOp, train::LossGradientOp, train::ConvOp,
              train::ConvInputGradOp, train::ConvWeightGradOp, train::BatchNormOp, train::BatchNormGradOp>(op);
}

/// Every dimension of the result passes, and operands broadcast.
static OpFactors elementwiseFactors(Operation *op) {
  OpFactors factors;
  const ArrayRef<int64_t> shape = typeOf(op->getResult(0)).getShape();
  kernels::Dimensions result;
  for (int64_t size : shape) {
    result.push_back({factors.map.factors.size()});
    factors.map.factors.push_back({size, kernels::FactorKind::Pass});
  }
  const auto add = [&](Value value) {
    const ArrayRef<int64_t> own = typeOf(value).getShape();
    kernels::Dimensions dimensions(result.end() - int64_t(own.size()), result.end());
    for (auto [d, size] : llvm::enumerate(own))
      if (size == 1)
        dimensions[d].clear();
    factors.map.operands.push_back(dimensions);
    factors.shapes.emplace_back(own);
    return factors.shapes.size() - 1;
  };
  for (Value operand : op->getOperands())
    factors.operands.emplace_back(add(operand));
  factors.results.emplace_back(add(op->getResult(0)));
  return factors;
}

static OpFactors kernelFactors(Operation *op, const SymbolTable &symbols) {
  OpFactors factors;
  const FailureOr<KernelCall> call = selectKernel(op, symbols, {});
  if (failed(call)) // reported where kernels are selected
    return factors;
  factors.map = kernels::factorsOf(call->invocation());
  SmallVector<bool> taken(call->operands.size());
  const auto find = [&](Value value, bool reads) -> std::optional<size_t> {
    for (auto [i, operand] : llvm::enumerate(call->operands))
      if (!taken[i] && operand.value == value && (operand.access == plan::Access::Read) == reads) {
        taken[i] = true;
        return i;
      }
    return std::nullopt;
  };
  for (Value operand : op->getOperands())
    factors.operands.push_back(find(operand, true));
  for (Value result : op->getResults())
    factors.results.push_back(find(result, false));
  for (const KernelOperand &operand : call->operands)
    factors.shapes.emplace_back(operand.type.getShape());
  return factors;
}

static bool isSplat(Value value) {
  auto constant = value.getDefiningOp<train::ConstantOp>();
  return constant && constant.getValue().isSplat();
}

/// Of the whole op.
static double workOf(Operation *op, const OpFactors &factors) {
  double work = 0;
  if (isa<train::MatmulOp, train::AttentionOp, train::AttentionGradOp>(op)) {
    work = 2 * ofProducts;
    for (const kernels::Factor &factor : factors.map.factors)
      work *= double(factor.size);
    return work;
  }
  for (Value operand : op->getOperands())
    work += ofMemory * bytesOf(operand);
  for (Value result : op->getResults())
    work += ofMemory * bytesOf(result);
  return work;
}

PartSweep::PartSweep(func::FuncOp function, const SymbolTable &symbols, int64_t ranks)
    : function_(function), ranks_(ranks) {
  for (Operation &op : function.getBody().front().without_terminator())
    if (hasFactors(&op)) {
      OpFactors &factors = factors_[&op];
      factors = isElementwise(&op) ? elementwiseFactors(&op) : kernelFactors(&op, symbols);
      factors.work = workOf(&op, factors);
    }
}

double PartSweep::conversion(Value value, const Part &to) const {
  const Part from = partOf(value);
  if (from == to)
    return 0;
  const double bytes = bytesOf(value), sent = bytes * double(ranks_ - 1) / double(ranks_);
  double cost = to.isCut() && !isSplat(value) ? bytes * ofMemory / double(ranks_) : 0;
  if (!from.isWhole() && !resolved_.contains(value))
    cost += from.isTerm() ? 2 * sent : sent;
  return cost;
}

double PartSweep::work(Operation *op, const PartDecision &decision) const {
  const auto factors = factors_.find(op);
  return factors == factors_.end() ? 0 : factors->second.work / double(decision.cut ? ranks_ : 1);
}

double PartSweep::costOf(Operation *op, const PartDecision &decision) const {
  double cost = work(op, decision);
  for (auto [operand, part] : llvm::zip(op->getOperands(), decision.operands))
    cost += conversion(operand, part);
  for (auto [result, part] : llvm::zip(op->getResults(), decision.results))
    if (part.isTerm()) // somebody will want their sum
      cost += 2 * bytesOf(result);
  return cost;
}

/// The decision of an op that runs on whole operands.
static PartDecision wholeDecision(Operation *op) {
  return {.operands = SmallVector<Part>(op->getNumOperands()), .results = SmallVector<Part>(op->getNumResults())};
}

std::optional<PartDecision> PartSweep::along(Operation *op, const OpFactors &factors, FactorCut cut) const {
  const kernels::Factor &factor = factors.map.factors[cut.factor];
  const bool isSum = factor.kind == kernels::FactorKind::Sum;
  if ((!isSum && factor.kind != kernels::FactorKind::Pass) || (factor.isPlaced && cut.runs > 1))
    return std::nullopt;
  PartDecision decision{.operands = {}, .results = {}, .cut = cut};
  for (auto [i, other] : llvm::enumerate(factors.map.factors))
    if (factor.isPlaced && other.isPlaced) {
      decision.whole.push_back(other.size);
      decision.steps.push_back(i == cut.factor ? other.size / ranks_ : 0);
    }
  const auto add = [&](Value value, std::optional<size_t> index, SmallVector<Part> &parts) {
    if (typeOf(value).getNumElements() == 0) // of nothing there are no parts
      return false;
    if (!index)
      return parts.push_back(Part::whole()), true;
    const std::optional<Part> part = partAlong(factors.map, factors.map.operands[*index], cut);
    const std::optional<Part> own =
        part ? reshaped(*part, factors.shapes[*index], typeOf(value).getShape(), ranks_) : std::nullopt;
    parts.push_back(own.value_or(Part::whole()));
    return own.has_value();
  };
  for (auto [operand, index] : llvm::zip(op->getOperands(), factors.operands))
    if (!add(operand, index, decision.operands))
      return std::nullopt;
  for (auto [result, index] : llvm::zip(op->getResults(), factors.results))
    if (!add(result, index, decision.results))
      return std::nullopt;
  for (Part &part : decision.results)
    if (isSum && part.isWhole())
      part = Part::term();
  return decision;
}

PartDecision PartSweep::decideByFactors(Operation *op) const {
  PartDecision best = wholeDecision(op);
  const auto found = factors_.find(op);
  if (found == factors_.end() || found->second.map.operands.empty())
    return best;
  const OpFactors &factors = found->second;
  double least = costOf(op, best);
  SmallVector<FactorCut> tried;
  for (auto [operand, index] : llvm::zip(op->getOperands(), factors.operands)) {
    const Part part = partOf(operand);
    if (!index || !part.isCut())
      continue;
    const std::optional<Part> seen = reshaped(part, typeOf(operand).getShape(), factors.shapes[*index], ranks_);
    const std::optional<FactorCut> cut =
        seen ? factorOf(factors.map, factors.map.operands[*index], *seen, ranks_) : std::nullopt;
    if (!cut || llvm::is_contained(tried, *cut))
      continue;
    tried.push_back(*cut);
    std::optional<PartDecision> decision = along(op, factors, *cut);
    if (!decision)
      continue;
    if (const double cost = costOf(op, *decision); cost < least) {
      least = cost;
      best = std::move(*decision);
    }
  }
  return best;
}

/// Of parts of q, k and v in one tensor, a slice that takes whole runs has its part of each.
static std::optional<Part> sliced(train::SliceOp slice, const Part &part) {
  if (!part.isCut())
    return std::nullopt;
  const size_t d = size_t(part.dim);
  const RankedTensorType type = typeOf(slice.getInput());
  const int64_t run = type.getDimSize(unsigned(d)) / part.runs, size = slice.getSizes()[d];
  if (slice.getSteps()[d] != 1 || slice.getStarts()[d] % run != 0 || size == 0 || size % run != 0)
    return std::nullopt;
  return Part::cut(part.dim, size / run);
}

/// Parts of runs that are all of one length.
std::optional<Part> PartSweep::joined(train::ConcatOp concat) const {
  const auto dim = int64_t(concat.getAxis());
  int64_t runs = 0, length = 0;
  for (Value input : concat.getInputs()) {
    const Part part = partOf(input);
    const int64_t own = part.isCut() ? typeOf(input).getDimSize(unsigned(dim)) / part.runs : 0;
    if (!part.isCut() || part.dim != dim || (runs > 0 && own != length))
      return std::nullopt;
    runs += part.runs;
    length = own;
  }
  return Part::cut(dim, runs);
}

PartDecision PartSweep::decide(Operation *op, const PartOfVariable &variables) const {
  PartDecision decision = wholeDecision(op);
  if (auto read = dyn_cast<train::ReadOp>(op)) {
    decision.results = {variables(read.getVariableAttr().getAttr())};
    return decision;
  }
  if (isa<train::AccumulateOp, train::StoreOp>(op)) {
    decision.operands = {variables(op->getAttrOfType<FlatSymbolRefAttr>("variable").getAttr())};
    return decision;
  }
  const auto isTerm = [&](Value value) { return partOf(value).isTerm(); };
  if (isLinear(op) && llvm::all_of(op->getOperands(), isTerm)) {
    decision.operands.assign(op->getNumOperands(), Part::term());
    decision.results = {Part::term()};
    return decision;
  }
  if (auto reshape = dyn_cast<train::ReshapeOp>(op)) {
    const Part part = partOf(reshape.getInput());
    const RankedTensorType from = typeOf(reshape.getInput()), to = typeOf(reshape.getResult());
    if (std::optional<Part> result = reshaped(part, from.getShape(), to.getShape(), ranks_); result && part.isCut()) {
      decision.operands = {part};
      decision.results = {*result};
    }
    return decision;
  }
  if (auto slice = dyn_cast<train::SliceOp>(op))
    if (const std::optional<Part> part = sliced(slice, partOf(slice.getInput()))) {
      decision.operands = {partOf(slice.getInput())};
      decision.results = {*part};
      return decision;
    }
  if (auto concat = dyn_cast<train::ConcatOp>(op))
    if (const std::optional<Part> part = joined(concat)) {
      decision.operands = llvm::map_to_vector(concat.getInputs(), [&](Value input) { return partOf(input); });
      decision.results = {*part};
      return decision;
    }
  if (isa<train::BlockSumSquaresOp>(op)) { // ranks gather the sums of their parts
    const Part part = partOf(op->getOperand(0));
    decision.operands = {part.isCut() ? part : Part::whole()};
    return decision;
  }
  return decideByFactors(op);
}

double PartSweep::run(const PartOfVariable &variables,
                      const std::function<void(Operation *, const PartDecision &)> &visit) {
  parts_.clear();
  resolved_.clear();
  double cost = 0;
  for (Operation &op : function_.getBody().front().without_terminator()) {
    PartDecision decision = decide(&op, variables);
    cost += work(&op, decision);
    for (auto [operand, part] : llvm::zip(op.getOperands(), decision.operands)) {
      cost += conversion(operand, part);
      if (part != partOf(operand) && !partOf(operand).isWhole()) {
        decision.joins = true;
        resolved_.insert(operand);
      }
    }
    for (auto [result, part] : llvm::zip(op.getResults(), decision.results))
      if (!part.isWhole())
        parts_[result] = part;
    if (visit)
      visit(&op, decision);
  }
  return cost;
}
