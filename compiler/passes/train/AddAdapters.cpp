//===- AddAdapters.cpp - low-rank adapters beside frozen weights ----------===//
//
// Every parameter whose value goes to products with activations, as it is, transposed or cast, is a candidate. Where
// its name is chosen, each of these products gets + (x A^T) B^T of two new parameters, and all others are frozen: LoRA
// (Hu et al. 2021), as torch modules have it from models/export.py --lora.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/train/Passes.h"
#include "dialects/Train/LocationName.h"
#include "dialects/Train/StopGradient.h"
#include "dialects/Train/Train.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <cmath>

namespace ds {
#define GEN_PASS_DEF_ADDADAPTERS
#include "compiler/passes/train/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A product that reads a weight, and how.
struct Use {
  train::MatmulOp product;
  bool isRight = false, isTransposed = false; ///< which operand the weight is; which way it is read

  /// Whether rows of the weight, as it is stored, are the layer's inputs.
  bool hasInputsFirst() const { return isRight != isTransposed; }
};

/// A parameter by its uses.
struct Candidate {
  SmallVector<Use> uses; ///< in program order; the first says which dimension of the weight is called its inputs
  std::string other;     ///< an op that is no product with an activation and reads it too; empty: there is none
};

std::string firstOf(ArrayRef<std::string> texts, StringRef between) {
  constexpr size_t most = 3;
  return llvm::join(texts.take_front(most), between) +
         (texts.size() > most ? " and " + std::to_string(texts.size() - most) + " more" : "");
}

/// A matrix, or its transpose.
struct Factor {
  Value value;
  bool isTransposed = false;
};

struct AddAdapters : ds::impl::AddAdaptersBase<AddAdapters> {
  using AddAdaptersBase::AddAdaptersBase;

  void runOnOperation() override {
    auto forward = getOperation().lookupSymbol<func::FuncOp>("forward");
    if (!forward || failed(add(forward)))
      signalPassFailure();
  }

private:
  LogicalResult add(func::FuncOp forward) {
    if (rank < 1)
      return getOperation().emitError() << "--lora " << rank.getValue()
                                        << " is no rank; give 1 or more, as in --lora 8";
    if (std::string error; !targets.empty() && !llvm::Regex(targets).isValid(error))
      return getOperation().emitError() << "--lora-targets '" << targets.getValue()
                                        << "' is no regular expression: " << error;
    const llvm::MapVector<StringAttr, Candidate> candidates = candidatesOf(forward);
    SmallVector<std::pair<train::VariableOp, const Candidate *>> chosen;
    SmallVector<std::string> left;
    for (const auto &[name, candidate] : candidates) {
      auto weight = getOperation().lookupSymbol<train::VariableOp>(name);
      if (candidate.uses.empty() || !(targets.empty() || llvm::Regex(targets).match(name)))
        continue;
      const std::string why = whyNot(weight, candidate);
      if (why.empty())
        chosen.emplace_back(weight, &candidate);
      else if (targets.empty())
        left.push_back("'" + name.str() + "' " + why);
      else
        return getOperation().emitError() << "--lora " << rank.getValue() << ": '" << name.strref() << "' " << why
                                          << "; leave it out of --lora-targets";
    }
    if (chosen.empty())
      return refuseNothing(candidates, left);
    for (auto variable : getOperation().getOps<train::VariableOp>())
      if (!isTrainedWhole(variable))
        variable.setTrainable(false);
    for (const auto &[weight, candidate] : chosen)
      if (failed(adapt(weight, *candidate)))
        return failure();
    note(chosen, left);
    return success();
  }

  /// By names of parameters that are matrices, in the order in which they are read.
  llvm::MapVector<StringAttr, Candidate> candidatesOf(func::FuncOp forward) {
    llvm::MapVector<StringAttr, Candidate> candidates;
    llvm::DenseSet<Value> activations; // what follows from the inputs
    activations.insert(forward.getArguments().begin(), forward.getArguments().end());
    forward.walk([&](Operation *op) {
      if (llvm::any_of(op->getOperands(), [&](Value operand) { return activations.contains(operand); }))
        activations.insert(op->result_begin(), op->result_end());
    });
    forward.walk([&](train::ReadOp read) {
      const auto type = cast<RankedTensorType>(read.getType());
      auto variable = getOperation().lookupSymbol<train::VariableOp>(read.getVariable());
      if (variable.getKind() == train::VariableKind::Parameter && type.getRank() == 2 &&
          isa<FloatType>(type.getElementType()))
        follow(read, false, activations, candidates[variable.getSymNameAttr()]);
    });
    for (auto &[name, candidate] : candidates)
      llvm::sort(candidate.uses, [](Use a, Use b) { return a.product->isBeforeInBlock(b.product); });
    return candidates;
  }

  static void follow(Value weight, bool isTransposed, const llvm::DenseSet<Value> &activations, Candidate &candidate) {
    for (OpOperand &use : weight.getUses()) {
      Operation *op = use.getOwner();
      auto product = dyn_cast<train::MatmulOp>(op);
      const unsigned number = use.getOperandNumber();
      if (auto transpose = dyn_cast<train::TransposeOp>(op))
        follow(transpose, isTransposed != (transpose.getPerm()[0] == 1), activations, candidate);
      else if (isa<train::CastOp>(op) && !train::stopsGradient(op))
        follow(op->getResult(0), isTransposed, activations, candidate);
      else if (product && number < 2 && activations.contains(product->getOperand(1 - number)))
        candidate.uses.push_back(
            {product, number == 1, isTransposed != (number == 1 ? product.getTransB() : product.getTransA())});
      else if (const std::string name = train::locationName(op->getLoc()); candidate.other.empty())
        candidate.other = name.empty() ? op->getName().getStringRef().str() : name;
    }
  }

  bool isTrainedWhole(train::VariableOp variable) const {
    return variable.getTrainable() && llvm::any_of(trainable, [&](const std::string &pattern) {
             return llvm::Regex(pattern).match(variable.getSymName());
           });
  }

  /// What stands against an adapter; empty: nothing.
  std::string whyNot(train::VariableOp weight, const Candidate &candidate) const {
    const ArrayRef<int64_t> shape = weight.getTensorType().getShape();
    if (isTrainedWhole(weight))
      return "is trained as a whole by --trainable";
    if (!candidate.other.empty())
      return "is read by " + candidate.other + ", too, so its adapter could not be merged";
    if (const int64_t least = std::min(shape[0], shape[1]); rank > least)
      return "is " + std::to_string(shape[0]) + " x " + std::to_string(shape[1]) + ", of rank " +
             std::to_string(least) + " at most";
    return "";
  }

  LogicalResult refuseNothing(const llvm::MapVector<StringAttr, Candidate> &candidates, ArrayRef<std::string> left) {
    SmallVector<std::string> names;
    for (const auto &[name, candidate] : candidates)
      if (!candidate.uses.empty())
        names.push_back("'" + name.str() + "'");
    InFlightDiagnostic error = getOperation().emitError() << "--lora " << rank.getValue() << ": ";
    if (names.empty())
      return error << "the model has no product of an activation with a parameter that is a matrix";
    if (targets.empty())
      return error << "no weight can have an adapter: " << firstOf(left, "; ");
    return error << "--lora-targets '" << targets.getValue()
                 << "' matches no parameter that products with activations read; there are " << firstOf(names, ", ");
  }

  LogicalResult adapt(train::VariableOp weight, const Candidate &candidate) {
    const bool inputsFirst = candidate.uses[0].hasInputsFirst();
    const ArrayRef<int64_t> shape = weight.getTensorType().getShape();
    const int64_t inputs = shape[inputsFirst ? 0 : 1], outputs = shape[inputsFirst ? 1 : 0];
    Builder builder(&getContext());
    const auto source = train::RandomSourceAttr::get(&getContext(), "uniform", builder.getF64FloatAttr(0),
                                                     builder.getF64FloatAttr(1 / std::sqrt(double(inputs))));
    const auto zeros = train::FillSourceAttr::get(&getContext(), builder.getF64FloatAttr(0));
    const auto b = addVariable(weight, ".lora_B", {outputs, rank}, zeros);
    const auto a = addVariable(weight, ".lora_A", {rank, inputs}, source); // stands first
    if (!a || !b)
      return failure();
    for (const Use &use : candidate.uses)
      change(use, a, b, inputsFirst);
    return success();
  }

  train::VariableOp addVariable(train::VariableOp weight, StringRef ending, ArrayRef<int64_t> shape, Attribute source) {
    const std::string name = (weight.getSymName() + ending).str();
    if (getOperation().lookupSymbol(name)) {
      getOperation().emitError() << "--lora " << rank.getValue() << ": the model has a parameter '" << name
                                 << "' already; leave '" << weight.getSymName() << "' out of --lora-targets";
      return {};
    }
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(weight);
    return train::VariableOp::create(
        builder, NameLoc::get(builder.getStringAttr(name)),
        train::VariableKindAttr::get(&getContext(), train::VariableKind::Parameter), builder.getStringAttr(name),
        FlatSymbolRefAttr(), TypeAttr::get(RankedTensorType::get(shape, weight.getTensorType().getElementType())),
        DenseI64ArrayAttr(), source, builder.getUnitAttr(), builder.getUnitAttr(), ArrayAttr());
  }

  /// The weight as it is stored changes by left right: B A, or its transpose A^T B^T where inputs stand first.
  static void change(const Use &use, train::VariableOp a, train::VariableOp b, bool inputsFirst) {
    train::MatmulOp product = use.product;
    ImplicitLocOpBuilder builder(product.getLoc(), product);
    builder.setInsertionPointAfter(product);
    const Type type = cast<RankedTensorType>(product.getType()).getElementType();
    Factor left{read(builder, a, type), inputsFirst}, right{read(builder, b, type), inputsFirst};
    if (!inputsFirst)
      std::swap(left, right);
    if (use.isTransposed) {
      std::swap(left, right);
      left.isTransposed = !left.isTransposed;
      right.isTransposed = !right.isTransposed;
    }
    const Factor data =
        use.isRight ? Factor{product.getLhs(), product.getTransA()} : Factor{product.getRhs(), product.getTransB()};
    const Value changed = use.isRight ? multiply(builder, {multiply(builder, data, left)}, right)
                                      : multiply(builder, left, {multiply(builder, right, data)});
    auto sum = train::AddOp::create(builder, product.getResult(), changed);
    product.getResult().replaceAllUsesExcept(sum.getResult(), sum);
  }

  /// In the type that the product has.
  static Value read(ImplicitLocOpBuilder &builder, train::VariableOp variable, Type type) {
    Value value = train::ReadOp::create(builder, variable.getTensorType(), variable.getSymName());
    if (variable.getTensorType().getElementType() == type)
      return value;
    return train::CastOp::create(builder, RankedTensorType::get(variable.getTensorType().getShape(), type), value,
                                 type);
  }

  static Value multiply(ImplicitLocOpBuilder &builder, const Factor &lhs, const Factor &rhs) {
    return train::MatmulOp::create(builder, lhs.value, rhs.value, Value(), lhs.isTransposed, rhs.isTransposed);
  }

  void note(ArrayRef<std::pair<train::VariableOp, const Candidate *>> chosen, ArrayRef<std::string> left) {
    SmallVector<std::string> names;
    for (auto [weight, candidate] : chosen)
      names.push_back("'" + weight.getSymName().str() + "'");
    InFlightDiagnostic remark = getOperation().emitRemark()
                                << "--lora " << rank.getValue() << ": " << chosen.size()
                                << (chosen.size() == 1 ? " weight has an adapter: " : " weights have adapters: ")
                                << firstOf(names, ", ") << "; all else is frozen"
                                << (trainable.empty() ? "" : " but for --trainable");
    if (!left.empty())
      remark << "; without one: " << firstOf(left, "; ");
  }
};

} // namespace
