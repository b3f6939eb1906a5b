//===- HostDevice.h - functions that host and GPU share -------------------===//
#pragma once

#ifdef __CUDACC__
#define DS_HOST_DEVICE __host__ __device__
/// Not copied into who calls it: the registers of a call are its own while it lasts.
#define DS_OUT_OF_LINE __host__ __device__ __noinline__
#else
#define DS_HOST_DEVICE
#define DS_OUT_OF_LINE
#endif
