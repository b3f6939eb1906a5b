//===- Export.cpp - the plan dialect becomes plan.proto -------------------===//
#include "compiler/export/Exporter.h"
#include "compiler/export/Fields.h"

using namespace mlir;
using namespace ds;
using namespace ds::exporting;

static const char *nameOf(train::Numerics numerics) {
  switch (numerics) {
  case train::Numerics::BitEqual:
    return "bit-equal";
  case train::Numerics::Reassociated:
    return "reassociated";
  case train::Numerics::Lossy:
    return "lossy";
  }
  llvm_unreachable("a numerics class without a name");
}

void Exporter::exportWorld() {
  for (auto mesh : module_.getOps<dist::MeshOp>())
    for (auto [axis, size] : llvm::zip(mesh.getAxes().getAsValueRange<StringAttr>(), mesh.getSizes())) {
      plan::proto::Axis &message = *plan_.mutable_world()->add_axes();
      message.set_name(axis.str());
      message.set_size(size);
    }
}

void Exporter::exportChannels() {
  for (auto channel : module_.getOps<plan::ChannelOp>()) {
    channels_[channel.getSymNameAttr()] = plan_.channels_size();
    plan::proto::Channel &message = *plan_.add_channels();
    message.set_name(channel.getSymName().str());
    message.set_axis(channel.getAxis());
    message.set_from(channel.getFrom());
    message.set_to(channel.getTo());
  }
}

void Exporter::exportCodes() {
  for (auto code : module_.getOps<plan::CodeOp>()) {
    codes_[code.getSymNameAttr()] = plan_.codes_size();
    plan::proto::DeviceCode &message = *plan_.add_codes();
    message.set_name(code.getSymName().str());
    message.set_text(code.getText().str());
    message.set_blocks(code.getBlocks());
    message.set_threads(code.getThreads());
  }
}

/// What ds-schedule-calls says of the stages.
void Exporter::exportPipeline() {
  for (auto pipeline : module_.getOps<dist::PipelineOp>()) {
    plan::proto::Pipeline &message = *plan_.mutable_pipeline();
    message.set_schedule(pipeline.getSchedule().str());
    message.set_chunks(pipeline.getChunks());
    message.set_bubble_fraction(pipeline.getBubble().convertToDouble());
    for (auto stage : pipeline.getOps<dist::StageOp>()) {
      plan::proto::Stage &item = *message.add_stages();
      item.set_first_op(stage.getFirstOp().str());
      item.set_last_op(stage.getLastOp().str());
      item.set_forward_seconds(stage.getForward().convertToDouble());
      item.set_backward_seconds(stage.getBackward().convertToDouble());
      item.set_weight_seconds(stage.getWeight().convertToDouble());
      item.set_microbatches_in_flight(stage.getInFlight());
      for (auto [name, type, receiver] :
           llvm::zip(stage.getSent().getAsValueRange<StringAttr>(), stage.getTypes().getAsValueRange<TypeAttr>(),
                     stage.getReceivers())) {
        plan::proto::SentValue &sent = *item.add_sent();
        sent.set_name(name.str());
        sent.set_bytes(plan::tensorBytes(type));
        sent.set_to_stage(receiver);
      }
    }
  }
}

/// Communicators, and the buckets that outlive a step.
void Exporter::exportBuckets() {
  for (auto communicator : module_.getOps<plan::CommunicatorOp>()) {
    communicators_[communicator.getSymNameAttr()] = plan_.communicators_size();
    plan::proto::Communicator &message = *plan_.add_communicators();
    message.set_name(communicator.getSymName().str());
    for (int64_t axis : communicator.getAxes())
      message.add_axes(axis);
  }
  for (auto mesh : module_.getOps<dist::MeshOp>())
    for (auto communicator : module_.getOps<plan::CommunicatorOp>())
      if (communicator.getAxes().size() == 1)
        alongAxis_[cast<StringAttr>(mesh.getAxes()[communicator.getAxes()[0]])] =
            communicators_.lookup(communicator.getSymNameAttr());
  for (auto bucket : module_.getOps<dist::BucketOp>()) {
    buckets_[bucket.getSymNameAttr()] = plan_.buckets_size();
    plan::proto::Bucket &message = *plan_.add_buckets();
    message.set_name(bucket.getSymName().str());
    message.set_dtype(exportDType(bucket.getWholeType().getElementType()));
    message.set_elements(bucket.getWholeType().getNumElements());
    if (bucket.isSharded()) {
      const int64_t slice = bucket.getSliceType().getNumElements();
      plan::proto::Window &window = *message.mutable_placement()->mutable_window();
      window.set_communicator(alongAxis_.lookup(bucket.getAxisAttr()));
      window.set_stride(slice);
      window.set_count(slice);
    }
    if (auto gathered = bucket->getAttrOfType<StringAttr>("dist.gathered"))
      message.set_gathered(gathered.str());
    for (auto [member, offset] : llvm::zip(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(), bucket.getOffsets())) {
      plan::proto::BucketMember &item = *message.add_members();
      item.set_variable(variables_.lookup(member.getAttr()));
      item.set_element(offset);
    }
  }
}

LogicalResult Exporter::run() {
  plan_.set_numerics(nameOf(train::numericsOf(module_)));
  plan_.set_stale(module_->hasAttr(train::staleAttribute));
  exportWorld();
  if (failed(exportVariables()))
    return failure();
  exportBuckets();
  exportChannels();
  exportCodes();
  exportPipeline();
  exportInputs();
  if (failed(exportReference()))
    return failure();
  exportRunningStatistics();
  return exportEachRole();
}

LogicalResult Exporter::exportEachRole() {
  for (auto role : module_.getOps<plan::RoleOp>())
    if (failed(exportRole(role)))
      return failure();
  return success();
}

LogicalResult Exporter::runRoles() {
  exportWorld();
  exportBuckets();
  exportChannels();
  exportCodes();
  return exportEachRole();
}

LogicalResult Exporter::runProgram() {
  for (auto variable : module_.getOps<train::VariableOp>()) {
    variables_[variable.getSymNameAttr()] = plan_.variables_size();
    plan_.add_variables()->set_name(variable.getSymName().str());
  }
  return exportReference();
}

LogicalResult ds::exporting::exportPlan(ModuleOp module, const ExportContext &context, plan::proto::Plan &plan) {
  return Exporter(module, context, plan).run();
}

LogicalResult ds::exporting::exportProgram(ModuleOp module, plan::proto::Plan &plan) {
  const ExportContext context;
  return Exporter(module, context, plan).runProgram();
}

LogicalResult ds::exporting::exportRoles(ModuleOp module, plan::proto::Plan &plan) {
  const ExportContext context;
  return Exporter(module, context, plan).runRoles();
}
