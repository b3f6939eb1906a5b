//===- NcclCommunicator.cpp - collectives by NCCL -------------------------===//
#include "runtime/comm/nccl/NcclCommunicator.h"

#include "core/DType.h"
#include "core/Status.h"
#include "runtime/comm/Communicator.h"
#include "runtime/comm/cuda/DeviceSum.h"
#include "runtime/comm/nccl/NcclConnection.h"
#include "runtime/comm/nccl/NcclSteps.h"

#include <cstddef>
#include <cstdint>
#include <nccl.h>

namespace ds::runtime {
namespace {

/// Of what is summed, or of bytes.
ncclDataType_t typeOf(DType dtype) noexcept {
  switch (dtype) {
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::I64:
    return ncclInt64;
  case DType::BF16:
    return ncclBfloat16;
  case DType::F16:
    return ncclFloat16;
  default:
    return ncclUint8;
  }
}

class Enqueuer final : public NcclSink {
public:
  Enqueuer(NcclConnection &connection, ncclComm_t communicator, const StreamCall &call)
      : connection_(connection), communicator_(communicator), call_(call) {}
  ~Enqueuer() override {
    if (open_) // after a failure: the group is the thread's, which may go on with another communicator
      (void)ncclGroupEnd();
  }

  Status beginGroup() noexcept override {
    open_ = true;
    return connection_.accept(ncclGroupStart(), call_);
  }

  Status call(const NcclCall &one) noexcept override { return connection_.accept(start(one), call_); }

  Status endGroup() noexcept override {
    open_ = false;
    return connection_.settle(ncclGroupEnd(), call_);
  }

  Status add(const Addition &addition) noexcept override {
    return connection_.checkCuda(
        sumOnDevice(addition.dtype, {&addition.addend, 1}, addition.target, addition.count, true, call_.stream), call_);
  }

private:
  ncclResult_t start(const NcclCall &one) noexcept {
    const ncclDataType_t type = typeOf(one.dtype);
    const bool moves = one.kind == NcclCall::Kind::AllGather || one.kind == NcclCall::Kind::Broadcast;
    if (!moves && type == ncclUint8) // bytes of wider numbers would be added
      return ncclInvalidArgument;
    switch (one.kind) {
    case NcclCall::Kind::AllGather:
      return ncclAllGather(one.source, one.target, one.count, type, communicator_, call_.stream);
    case NcclCall::Kind::ReduceScatter:
      return ncclReduceScatter(one.source, one.target, one.count, type, ncclSum, communicator_, call_.stream);
    case NcclCall::Kind::AllReduce:
      return ncclAllReduce(one.source, one.target, one.count, type, ncclSum, communicator_, call_.stream);
    case NcclCall::Kind::Broadcast:
      return ncclBroadcast(one.source, one.target, one.count, type, int(one.root), communicator_, call_.stream);
    case NcclCall::Kind::Reduce:
      return ncclReduce(one.source, one.target, one.count, type, ncclSum, int(one.root), communicator_, call_.stream);
    }
    return ncclInvalidArgument;
  }

  NcclConnection &connection_;
  const ncclComm_t communicator_;
  const StreamCall &call_;
  bool open_ = false;
};

} // namespace

Status NcclCommunicator::run(const Collective &collective) noexcept {
  const StreamCall call{name(collective.kind), collective.what, cudaStream_t(collective.stream)};
  const Status status = connection_->run(call, [&](ncclComm_t communicator) noexcept {
    Enqueuer enqueuer(*connection_, communicator, call);
    return issue(collective, rank(), size(), enqueuer);
  });
  if (status.ok())
    for (const CollectivePart &part : collective.parts)
      wireBytes_[size_t(collective.kind)] +=
          wireBytesOf(collective.kind, part.count, uint64_t(byteSize(part.dtype)), rank(), size());
  return status;
}

WireBytes NcclCommunicator::wireBytes() const noexcept {
  WireBytes bytes;
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = wireBytes_[i];
  return bytes;
}

} // namespace ds::runtime
