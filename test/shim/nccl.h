//===- nccl.h - NCCL, among processes of one host -------------------------===//
//
// Stands in for NCCL's header of this name (docs/gpu-shim.md): what runtime/comm/nccl calls, with NCCL's numbers and
// names. FakeNccl.cpp says what becomes of a call.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "test/shim/cuda_runtime_api.h"

#include <climits>
#include <cstddef>

#define NCCL_VERSION_CODE 22809

using ncclComm_t = struct ncclComm *;
struct ncclUniqueId {
  char internal[128];
};

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};

enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};

enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };

struct ncclConfig_t {
  int blocking;
};
#define NCCL_CONFIG_INITIALIZER {INT_MIN}

ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
/// The sentence of the last misuse or failure, of the communicator where it has one.
const char *ncclGetLastError(ncclComm_t communicator);

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t *state);
ncclResult_t ncclCommRegister(ncclComm_t communicator, void *buffer, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(ncclComm_t communicator, void *handle);
ncclResult_t ncclCommFinalize(ncclComm_t communicator);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
ncclResult_t ncclCommAbort(ncclComm_t communicator);

ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();

ncclResult_t ncclAllGather(const void *source, void *target, size_t count, ncclDataType_t type, ncclComm_t communicator,
                           cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *source, void *target, size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *source, void *target, size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclReduce(const void *source, void *target, size_t count, ncclDataType_t type, ncclRedOp_t operation,
                        int root, ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclSend(const void *source, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *target, size_t count, ncclDataType_t type, int peer, ncclComm_t communicator,
                      cudaStream_t stream);
