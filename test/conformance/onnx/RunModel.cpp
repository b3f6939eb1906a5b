//===- RunModel.cpp - a graph's outputs, by the product's own path ------------===//
#include "test/conformance/onnx/RunModel.h"

#include "compiler/config/Machine.h"
#include "compiler/driver/Diagnostics.h"
#include "compiler/export/Export.h"
#include "compiler/import/Import.h"
#include "compiler/import/Types.h"
#include "compiler/passes/Passes.h"
#include "core/Error.h"
#include "dialects/Dist/Dist.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Train/Train.h"
#include "kernels/KernelRegistry.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/executor/Executor.h"
#include "runtime/plan/format/PlanFile.h"
#include "runtime/plan/format/PlanReader.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;

namespace ds::test {
namespace {

constexpr int threads = 2;

void runPipeline(ModuleOp module, const driver::DiagnosticCollector &diagnostics, const char *phase, auto build) {
  PassManager manager(module.getContext());
  build(manager);
  if (failed(manager.run(module)))
    diagnostics.raise(phase);
}

ElementsAttr elementsOf(const HostTensor &tensor, RankedTensorType type) {
  if (tensor.dtype == DType::Bool) // whole bytes here, bits there
    return DenseElementsAttr::get(
        type, ArrayRef<bool>(reinterpret_cast<const bool *>(tensor.bytes.data()), tensor.bytes.size()));
  return DenseElementsAttr::getFromRawBuffer(type, tensor.bytes);
}

std::string outputVariable(size_t index) { return "output::" + std::to_string(index); }

/// @forward(inputs) -> outputs becomes @evaluate(): inputs are variables whose first values are the case's, outputs are
/// stored into variables. A step that does nothing stands beside it.
void makeEvaluation(ModuleOp module, const std::vector<HostTensor> &inputs) {
  auto function = module.lookupSymbol<func::FuncOp>("forward");
  Block &body = function.getBody().front();
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody()), builder = OpBuilder::atBlockBegin(&body);
  const Location location = function.getLoc();
  auto declare = [&](const std::string &name, Type type, Attribute source) {
    train::VariableOp::create(top, location, train::VariableKind::Buffer, name, cast<RankedTensorType>(type), source);
  };
  for (BlockArgument argument : body.getArguments()) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.input");
    for (const HostTensor &input : inputs)
      if (name == input.name) {
        const std::string variable = "input::" + input.name;
        auto type = cast<RankedTensorType>(argument.getType());
        declare(variable, type, train::LiteralSourceAttr::get(module.getContext(), elementsOf(input, type)));
        argument.replaceAllUsesWith(train::ReadOp::create(builder, location, type, variable));
      }
  }
  auto end = cast<func::ReturnOp>(body.getTerminator());
  builder.setInsertionPoint(end);
  for (auto [i, value] : llvm::enumerate(end.getOperands())) {
    declare(outputVariable(i), value.getType(),
            train::FillSourceAttr::get(module.getContext(), builder.getF64FloatAttr(0)));
    train::StoreOp::create(builder, location, outputVariable(i), value);
  }
  end->setOperands({});
  if (failed(function.eraseArguments(BitVector(function.getNumArguments(), true))) ||
      failed(function.eraseResults(BitVector(function.getNumResults(), true))))
    throw Error("@forward keeps its arguments or results");
  function.setSymName("evaluate");
  builder.setInsertionPointToEnd(module.getBody());
  for (const char *name : {"microbatch", "update"}) {
    auto empty = func::FuncOp::create(builder, location, name, builder.getFunctionType({}, {}));
    OpBuilder inside = OpBuilder::atBlockBegin(empty.addEntryBlock());
    func::ReturnOp::create(inside, location);
  }
}

plan::proto::Plan compileModel(const Case &test) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<func::FuncDialect, train::TrainDialect, dist::DistDialect, plan::PlanDialect>();
  driver::DiagnosticCollector diagnostics(context);
  import::ImportOptions model;
  model.path = "model.onnx";
  model.results = import::ImportOptions::Results::Outputs;
  model.dropout = import::ImportOptions::Dropout::AsWritten;
  model.batchNorm = import::ImportOptions::BatchNorm::AsWritten;
  OwningOpRef<ModuleOp> module = import::importModel(context, model, test.model.SerializeAsString());
  if (!module)
    diagnostics.raise("import");
  const config::Machine machine; // the built-in one
  CompileOptions options;
  options.threads = threads;
  options.pipeline.schedule = "1f1b";
  options.workspaceBytesPerThread = machine.workspaceBytesPerThread;
  options.alignment = machine.alignment;
  runPipeline(*module, diagnostics, "simplification", [](PassManager &pm) { buildSimplifyPipeline(pm, {}); });
  makeEvaluation(*module, test.inputs);
  runPipeline(*module, diagnostics, "distribution", [&](PassManager &pm) { buildDistributePipeline(pm, options); });
  runPipeline(*module, diagnostics, "planning", [&](PassManager &pm) { buildPlanPipeline(pm, options); });
  plan::proto::Plan plan;
  plan.set_format_version(plan::formatVersion);
  plan.set_model("conformance");
  plan.mutable_machine()->set_device("cpu");
  plan.mutable_machine()->set_threads(threads);
  plan.mutable_machine()->set_alignment(uint64_t(options.alignment));
  plan.set_numerics("bit-equal");
  plan.mutable_training()->set_micro_batch_size(1);
  plan.mutable_training()->set_accumulation_steps(1);
  plan.mutable_training()->set_train_batch_size(1);
  if (failed(exporting::exportPlan(*module, {}, plan)))
    diagnostics.raise("export");
  return plan;
}

HostTensor readOutput(const runtime::Executor &executor, const plan::proto::Plan &plan, size_t index) {
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (variable.name() != outputVariable(index))
      continue;
    HostTensor tensor{variable.name(), DType(variable.dtype()), {variable.shape().begin(), variable.shape().end()}, {}};
    executor.readVariable(uint32_t(i), [&](std::span<const std::byte> part) {
      const auto *bytes = reinterpret_cast<const char *>(part.data());
      tensor.bytes.insert(tensor.bytes.end(), bytes, bytes + part.size());
    });
    return tensor;
  }
  throw Error("the plan has no variable " + outputVariable(index));
}

} // namespace

std::vector<HostTensor> runModel(const Case &test) {
  const plan::proto::Plan plan = compileModel(test);
  plan::validatePlan(plan);
  runtime::CpuDevice device;
  runtime::Executor executor(plan, device, kernels::cpuKernels(), {.threads = threads});
  executor.initialize(runtime::VariableSources(plan, {}));
  if (const Status status = executor.execute({.program = executor.program("evaluate").value()}); !status.ok())
    throw Error(std::string(status.message()));
  std::vector<HostTensor> outputs;
  for (size_t i = 0; i < test.outputs.size(); ++i)
    outputs.push_back(readOutput(executor, plan, i));
  return outputs;
}

} // namespace ds::test
