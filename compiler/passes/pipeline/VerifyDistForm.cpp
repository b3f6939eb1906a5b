//===- VerifyDistForm.cpp - check that every value is stored before it is loaded //
//
// 1. Nothing names a member of a sharded bucket but by the bucket.
// 2. Every channel has one send and one receive, of the same types, and lies on the mesh.
// 3. Each program is followed call by call: what a fragment loads of a micro-batch, an earlier call has stored, fed
//    or received.
// A verify pass between phases, as in IREE (Stream/Transforms/VerifyLowerings.cpp).
//
//===----------------------------------------------------------------------===//
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

/// What a fragment loads and provides; the same for every call.
struct Effects {
  SmallVector<dist::LoadOp> loads;
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
      if (auto load = dyn_cast<dist::LoadOp>(op))
        effects.loads.push_back(load);
      else if (auto store = dyn_cast<dist::StoreOp>(op))
        effects.provides.insert(store.getValueAttr().getAttr());
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
            return dist::withDeclaration(
                op.emitOpError() << "names " << name << ", of which a rank holds a slice in bucket @"
                                 << buckets.bucketOf(name.getAttr()).getSymName()
                                 << "; see ds-insert-reductions, ds-shard-optimizer, ds-insert-parameter-gathers",
                buckets.bucketOf(name.getAttr()));
    return success();
  }

  /// `error` with a note at the op that it speaks of, too; null: there is none.
  static LogicalResult noteOther(InFlightDiagnostic &&error, Operation *other) {
    if (other)
      error.attachNote(other->getLoc()) << "the other";
    return error;
  }

  /// Channels lie on the mesh, and what leaves has the types of what arrives.
  LogicalResult verifyChannels() {
    llvm::DenseMap<StringAttr, dist::SendOp> sends;
    llvm::DenseMap<StringAttr, dist::ReceiveOp> receives;
    for (auto fragment : getOperation().getOps<dist::FragmentOp>()) {
      for (auto send : fragment.getOps<dist::SendOp>())
        if (auto [other, isFirst] = sends.try_emplace(send.getChannelAttr().getAttr(), send); !isFirst)
          return noteOther(send.emitOpError() << "sends on " << send.getChannelAttr() << ", on which another op sends",
                           other->second);
      for (auto receive : fragment.getOps<dist::ReceiveOp>())
        if (auto [other, isFirst] = receives.try_emplace(receive.getChannelAttr().getAttr(), receive); !isFirst)
          return noteOther(receive.emitOpError()
                               << "receives on " << receive.getChannelAttr() << ", on which another op receives",
                           other->second);
    }
    const SymbolTable symbols(getOperation());
    for (auto channel : getOperation().getOps<dist::ChannelOp>()) {
      dist::MeshOp mesh = dist::requireMesh(getOperation());
      if (!mesh)
        return failure();
      const int64_t size = dist::axisSize(mesh, channel.getAxis());
      if (int64_t(channel.getFrom()) >= size || int64_t(channel.getTo()) >= size)
        return dist::withMesh(channel.emitOpError()
                                  << "leads from " << channel.getFrom() << " to " << channel.getTo()
                                  << "; the mesh's axis \"" << channel.getAxis() << "\" has " << size << " ranks",
                              mesh);
      dist::SendOp send = sends.lookup(channel.getSymNameAttr());
      dist::ReceiveOp receive = receives.lookup(channel.getSymNameAttr());
      if (!send || !receive)
        return noteOther(channel.emitOpError() << "has no " << (send ? "dist.receive" : "dist.send"),
                         send ? send.getOperation() : receive.getOperation());
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
    llvm::DenseSet<StringAttr> always;                           // stored for the step
    for (auto call : program.getOps<dist::CallOp>()) {
      const Effects &own = effects.at(call.getFragmentAttr().getAttr());
      auto &values = present[call.getMicrobatch()];
      for (dist::LoadOp load : own.loads)
        if (!values.contains(load.getValueAttr().getAttr()) && !always.contains(load.getValueAttr().getAttr())) {
          InFlightDiagnostic error = call.emitOpError() << "loads " << load.getValueAttr() << " of micro-batch "
                                                        << call.getMicrobatch() << ", which no earlier call stored";
          error.attachNote(load.getLoc()) << "loaded here";
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
