//===- ClosedWorldKinds.cpp - commands that say less, or other things, than they do --===//
//
// Each is refused as "meaning". The comment at a kind names the rule's file in compiler/check or
// compiler/check/meaning.
//
//===----------------------------------------------------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>
#include <utility>

namespace ds::mutation {

namespace {

using Operands = google::protobuf::RepeatedPtrField<proto::Operand>;

/// Operands in a routine of program step that `change` can do something with; what it did, or "".
std::string changeKernel(proto::Plan &plan, Random &random, const IsWanted &isWanted,
                         bool (*change)(proto::KernelCommand &kernel), const char *text) {
  std::vector<Place> places = find(plan, [&](const proto::Command &command) {
    proto::KernelCommand copy = command.kernel();
    return command.has_kernel() && isWanted(command) && change(copy);
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  const std::string where = describe(plan, *place);
  change(*at(plan, *place).mutable_kernel());
  return where + " " + text;
}

bool exchangeInputs(proto::KernelCommand &kernel) {
  Operands &operands = *kernel.mutable_operands();
  if (operands.size() < 3 || !reads(operands[0]) || !reads(operands[1]) || operands[0].dtype() != operands[1].dtype() ||
      bytesOf(operands[0]) != bytesOf(operands[1]) || operands[0].buffer() == operands[1].buffer())
    return false;
  operands.SwapElements(0, 1);
  return true;
}

/// Meaning.cpp: a kernel that names no op.
std::string unnamedKernel(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) {
    proto::KernelCommand copy = command.kernel();
    return command.has_kernel() && command.reference_size() == 1 && !isKernel(command, "elementwise") &&
           !isOptimizer(command) && exchangeInputs(copy);
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  exchangeInputs(*at(plan, *place).mutable_kernel());
  at(plan, *place).clear_reference();
  return describe(plan, *place) + " names no op and has its inputs exchanged";
}

/// Meaning.cpp: a kernel that names several.
std::string kernelOfSeveralOps(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) {
    proto::KernelCommand copy = command.kernel();
    return isKernel(command, "matmul") && command.reference_size() == 1 && exchangeInputs(copy);
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  exchangeInputs(*at(plan, *place).mutable_kernel());
  at(plan, *place).add_reference(at(plan, *place).reference(0));
  return describe(plan, *place) + " names two ops and has its inputs exchanged";
}

/// Check.cpp: a plan that says of no command what it means.
std::string noReference(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, isOptimizer));
  proto::Attribute *decay = place ? attribute(at(plan, *place), "weight_decay") : nullptr;
  if (!decay)
    return "";
  decay->set_number(decay->number() + 0.25);
  plan.clear_reference();
  for (proto::Role &role : *plan.mutable_roles())
    for (proto::Routine &routine : *role.mutable_routines())
      for (proto::Command &command : *routine.mutable_commands())
        command.clear_reference();
  return describe(plan, *place) + " with another weight_decay, in a plan without a reference program";
}

/// OpRules.cpp: enumerations.
std::string lossSummed(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, makesLossGradient,
      [](proto::KernelCommand &kernel) {
        for (proto::Attribute &one : *kernel.mutable_attributes())
          if (one.name() == "reduction" && one.text() == "mean") {
            one.set_text("sum");
            return true;
          }
        return false;
      },
      "of a sum, not of a mean");
}

/// OpRules.cpp: half of what is summed over, in a product whose two sides have their rows in common.
bool halveRows(proto::KernelCommand &kernel) {
  Operands &operands = *kernel.mutable_operands();
  if (operands.size() < 3 || operands[0].shape_size() != 2 || operands[1].shape_size() != 2 ||
      operands[0].shape(0) != operands[1].shape(0) || operands[0].shape(0) % 2 != 0)
    return false;
  for (const proto::Attribute &one : kernel.attributes())
    if ((one.name() == "trans_a" && one.integer() == 0) || (one.name() == "trans_b" && one.integer() != 0))
      return false;
  for (int i : {0, 1})
    operands[i].set_shape(0, operands[i].shape(0) / 2);
  return true;
}
std::string halfAProduct(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "matmul"); }, halveRows,
      "sums over half of the rows");
}

/// OpRules.cpp: half of the rows of a sum.
std::string halfASum(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "reduce_sum"); },
      [](proto::KernelCommand &kernel) {
        proto::Operand &input = *kernel.mutable_operands(0);
        for (const proto::Attribute &one : kernel.attributes())
          if (one.name() == "axes" && one.integers().values_size() > 0 && one.integers().values(0) == 0 &&
              input.shape_size() > 0 && input.shape(0) % 2 == 0) {
            input.set_shape(0, input.shape(0) / 2);
            return true;
          }
        return false;
      },
      "sums half of the rows");
}

/// OpRules.cpp: attention in which queries and heads have changed places, everywhere alike.
std::string exchangedHeads(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "attention"); },
      [](proto::KernelCommand &kernel) {
        for (proto::Operand &operand : *kernel.mutable_operands())
          if (operand.shape_size() > 2) {
            if (operand.shape(1) == operand.shape(2))
              return false;
            operand.mutable_shape()->SwapElements(1, 2);
          }
        return true;
      },
      "with heads and places exchanged");
}

/// Values.cpp (broadcast): an input that repeats along one axis of the result repeats along others instead.
bool repeatOtherwise(proto::KernelCommand &kernel) {
  const auto &result = kernel.operands(kernel.operands_size() - 1).shape();
  for (proto::Operand &operand : *kernel.mutable_operands())
    for (int d = 0, own = operand.shape_size() - result.size(); d < result.size(); ++d, ++own) {
      const bool repeats = result[d] > 1 && (own < 0 || operand.shape(own) == 1);
      const uint64_t elements = bytesOf(operand) / (operand.dtype() == proto::DTYPE_F32 ? 4 : 8);
      if (!reads(operand) || !repeats || elements < uint64_t(result[d]))
        continue;
      operand.clear_shape();
      operand.add_shape(result[d]);
      for (int rest = d + 1; rest < result.size(); ++rest)
        operand.add_shape(1);
      return true;
    }
  return false;
}
std::string otherBroadcast(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "elementwise"); }, repeatOtherwise,
      "with an input that repeats along other axes");
}

/// OpRules.cpp: floats summed as if they were integers of the same size.
std::string sumOfIntegers(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "reduce_sum"); },
      [](proto::KernelCommand &kernel) {
        for (int i : {0, 1}) {
          if (kernel.operands(i).dtype() != proto::DTYPE_F32)
            return false;
          kernel.mutable_operands(i)->set_dtype(proto::DTYPE_I32);
        }
        return true;
      },
      "of int32");
}

/// Meaning.cpp (updateOf): two float32 taken for one float64.
std::string optimizerOfDoubles(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, isOptimizer,
      [](proto::KernelCommand &kernel) {
        for (proto::Operand &operand : *kernel.mutable_operands()) {
          if (operand.dtype() != proto::DTYPE_F32)
            continue;
          const int last = operand.shape_size() - 1;
          if (last < 0 || operand.shape(last) % 2 != 0)
            return false;
          operand.set_shape(last, operand.shape(last) / 2);
          operand.set_dtype(proto::DTYPE_F64);
        }
        return true;
      },
      "of float64, half as many");
}

/// MeaningRules.cpp (requireSumType): gradients summed over the ranks as integers.
std::string gradientsAsIntegers(proto::Plan &plan, Random &random) {
  std::vector<Place> places = findWhere(
      plan,
      [](const proto::Command &command) {
        return isCollective(command, proto::CollectiveCommand::REDUCE_SCATTER) ||
               isCollective(command, proto::CollectiveCommand::ALL_REDUCE);
      },
      [&](const Place &place) { return touchesGradients(plan, place); });
  const auto place = random.pick(places);
  if (!place)
    return "";
  for (proto::CollectivePart &part : *at(plan, *place).mutable_collective()->mutable_parts())
    for (proto::Operand *operand : {part.mutable_source(), part.mutable_target()}) {
      if (operand->shape_size() == 0 || operand->shape(0) % 2 != 0)
        return "";
      operand->set_shape(0, operand->shape(0) / 2);
      operand->set_dtype(proto::DTYPE_I64);
    }
  return describe(plan, *place) + " of int64, half as many";
}

/// NormRules.cpp: the squares of one element.
std::string normOfOneElement(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "block_sum_squares"); },
      [](proto::KernelCommand &kernel) {
        proto::Operand &input = *kernel.mutable_operands(0);
        if (kernel.operands(1).shape_size() != 1 || kernel.operands(1).shape(0) != 1 || bytesOf(input) <= 4)
          return false;
        input.clear_shape();
        input.add_shape(1);
        return true;
      },
      "of one element");
}

/// NormRules.cpp, OpRules.cpp: a gradient that the norm leaves out.
std::string normWithoutAPart(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "global_norm"); },
      [](proto::KernelCommand &kernel) {
        for (proto::Attribute &one : *kernel.mutable_attributes())
          if (one.name() == "blocks" && one.integers().values_size() > 1) {
            auto &blocks = *one.mutable_integers()->mutable_values();
            blocks.erase(blocks.begin());
            kernel.mutable_operands()->DeleteSubrange(0, 1);
            return true;
          }
        return false;
      },
      "without its first part");
}

/// OpRules.cpp: a product that does more than its op.
std::string addedEpilogue(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "matmul"); },
      [](proto::KernelCommand &kernel) {
        Operands &operands = *kernel.mutable_operands();
        if (operands.size() < 3 || operands[2].access() != proto::Operand::WRITE ||
            operands[0].dtype() != operands[2].dtype() || bytesOf(operands[0]) != bytesOf(operands[2]))
          return false;
        proto::Operand aux = operands[0];
        *aux.mutable_shape() = operands[2].shape();
        *operands.Add() = aux;
        for (int i = operands.size() - 1; i > 2; --i)
          operands.SwapElements(i, i - 1);
        proto::Attribute &epilogue = *kernel.add_attributes();
        epilogue.set_name("epilogue");
        epilogue.set_text("gelu_tanh_grad");
        return true;
      },
      "multiplies by a gradient of GELU, too");
}

/// OpRules.cpp: another order of sums.
std::string otherPieces(proto::Plan &plan, Random &random) {
  return changeKernel(
      plan, random, [](const proto::Command &command) { return isKernel(command, "matmul"); },
      [](proto::KernelCommand &kernel) {
        for (proto::Attribute &one : *kernel.mutable_attributes())
          if (one.name() == "pieces") {
            one.set_integer(one.integer() + 3);
            return true;
          }
        return false;
      },
      "in other pieces");
}

} // namespace

std::vector<Kind> closedWorldKinds() {
  return {{"unnamed-kernel", true, unnamedKernel},
          {"kernel-of-several-ops", true, kernelOfSeveralOps},
          {"no-reference", true, noReference},
          {"loss-summed", true, lossSummed},
          {"half-a-product", true, halfAProduct},
          {"half-a-sum", true, halfASum},
          {"exchanged-heads", true, exchangedHeads},
          {"other-broadcast", true, otherBroadcast},
          {"sum-of-integers", true, sumOfIntegers},
          {"optimizer-of-doubles", true, optimizerOfDoubles},
          {"gradients-as-integers", true, gradientsAsIntegers},
          {"norm-of-one-element", true, normOfOneElement},
          {"norm-without-a-part", true, normWithoutAPart},
          {"added-epilogue", true, addedEpilogue},
          {"other-pieces", true, otherPieces}};
}

} // namespace ds::mutation
