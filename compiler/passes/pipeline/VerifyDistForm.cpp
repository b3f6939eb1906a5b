//===- VerifyDistForm.cpp - check that every value is kept before it is taken -===//
#include "compiler/analysis/BucketIndex.h"
#include "compiler/passes/pipeline/Passes.h"
#include "dialects/Dist/Mesh.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"

namespace ds {
#define GEN_PASS_DEF_VERIFYDISTFORM
#include "compiler/passes/pipeline/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// What a fragment takes and provides; the same for every call.
struct Effects {
  SmallVector<dist::LoadOp> takes;
  llvm::SetVector<StringAttr> provides;
};

struct VerifyDistForm : ds::impl::VerifyDistFormBase<VerifyDistForm> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>()) {
      function.emitError("is left over; ds-outline-fragments should have cut it into fragments");
      return signalPassFailure();
    }
    if (failed(verifyBuckets()) || failed(verifyChannels()))
      return signalPassFailure();
    for (auto value : module.getOps<dist::ValueOp>())
      if (value.getForStep())
        forStep_.insert(value.getSymNameAttr());
    llvm::DenseMap<StringAttr, Effects> effects; // looked up, never iterated
    for (auto fragment : module.getOps<dist::FragmentOp>())
      effects[fragment.getSymNameAttr()] = effectsOf(fragment);
    for (auto role : module.getOps<dist::RoleOp>())
      for (auto program : role.getOps<dist::ProgramOp>())
        if (failed(follow(program, effects)))
          return signalPassFailure();
  }

  static Effects effectsOf(dist::FragmentOp fragment) {
    Effects effects;
    for (Operation &op : fragment.getBody().front()) {
      if (auto take = dyn_cast<dist::LoadOp>(op))
        effects.takes.push_back(take);
      else if (auto keep = dyn_cast<dist::StoreOp>(op))
        effects.provides.insert(keep.getValueAttr().getAttr());
      else if (auto feed = dyn_cast<dist::FeedOp>(op))
        effects.provides.insert(feed.getValueAttr().getAttr());
      else if (auto receive = dyn_cast<dist::ReceiveOp>(op))
        for (auto name : receive.getValues().getAsRange<FlatSymbolRefAttr>())
          effects.provides.insert(name.getAttr());
    }
    return effects;
  }

  /// What a rank holds but a slice of is named by bucket alone.
  LogicalResult verifyBuckets() {
    const BucketIndex buckets(getOperation());
    for (auto fragment : getOperation().getOps<dist::FragmentOp>())
      for (Operation &op : fragment.getBody().front())
        for (NamedAttribute attribute : op.getAttrDictionary())
          if (auto name = dyn_cast<FlatSymbolRefAttr>(attribute.getValue()); name && buckets.isSharded(name.getAttr()))
            return op.emitOpError() << "names " << name << ", of which a rank holds a slice in bucket @"
                                    << buckets.bucketOf(name.getAttr()).getSymName()
                                    << "; see ds-insert-reductions, ds-shard-optimizer, ds-insert-parameter-gathers";
    return success();
  }

  /// Channels lie on the mesh, and what leaves has the types of what arrives.
  LogicalResult verifyChannels() {
    llvm::DenseMap<StringAttr, dist::SendOp> sends;
    llvm::DenseMap<StringAttr, dist::ReceiveOp> receives;
    for (auto fragment : getOperation().getOps<dist::FragmentOp>()) {
      for (auto send : fragment.getOps<dist::SendOp>())
        if (!sends.try_emplace(send.getChannelAttr().getAttr(), send).second)
          return send.emitOpError() << "sends on " << send.getChannelAttr() << ", on which another op sends";
      for (auto receive : fragment.getOps<dist::ReceiveOp>())
        if (!receives.try_emplace(receive.getChannelAttr().getAttr(), receive).second)
          return receive.emitOpError() << "receives on " << receive.getChannelAttr()
                                       << ", on which another op receives";
    }
    const SymbolTable symbols(getOperation());
    for (auto channel : getOperation().getOps<dist::ChannelOp>()) {
      dist::MeshOp mesh = dist::requireMesh(getOperation());
      if (!mesh)
        return failure();
      const int64_t size = dist::axisSize(mesh, channel.getAxis());
      if (int64_t(channel.getFrom()) >= size || int64_t(channel.getTo()) >= size)
        return channel.emitOpError() << "leads from " << channel.getFrom() << " to " << channel.getTo()
                                     << "; the mesh's axis \"" << channel.getAxis() << "\" has " << size << " ranks";
      dist::SendOp send = sends.lookup(channel.getSymNameAttr());
      dist::ReceiveOp receive = receives.lookup(channel.getSymNameAttr());
      if (!send || !receive)
        return channel.emitOpError() << "has no " << (send ? "dist.receive" : "dist.send");
      SmallVector<Type> received;
      for (auto name : receive.getValues().getAsRange<FlatSymbolRefAttr>())
        received.push_back(symbols.lookup<dist::ValueOp>(name.getAttr()).getType());
      if (TypeRange(send.getTensors()) != TypeRange(received)) {
        InFlightDiagnostic error = send.emitOpError()
                                   << "sends other types than are received on " << send.getChannelAttr();
        error.attachNote(receive.getLoc()) << "received here";
        return error;
      }
    }
    return success();
  }

  LogicalResult follow(dist::ProgramOp program, const llvm::DenseMap<StringAttr, Effects> &effects) {
    llvm::DenseMap<int64_t, llvm::DenseSet<StringAttr>> present; // by micro-batch
    llvm::DenseSet<StringAttr> always;                           // kept for the step
    for (auto call : program.getOps<dist::CallOp>()) {
      const Effects &own = effects.at(call.getFragmentAttr().getAttr());
      auto &values = present[call.getMicrobatch()];
      for (dist::LoadOp take : own.takes)
        if (!values.contains(take.getValueAttr().getAttr()) && !always.contains(take.getValueAttr().getAttr())) {
          InFlightDiagnostic error = call.emitOpError() << "takes " << take.getValueAttr() << " of micro-batch "
                                                        << call.getMicrobatch() << ", which no earlier call kept";
          error.attachNote(take.getLoc()) << "taken here";
          return error;
        }
      for (StringAttr name : own.provides)
        (forStep_.contains(name) ? always : values).insert(name);
    }
    return success();
  }

  llvm::DenseSet<StringAttr> forStep_; // values; looked up
};

} // namespace
