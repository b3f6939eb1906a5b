//===- HostDevice.h - functions that host and GPU share -------------------===//
#pragma once

#ifdef __CUDACC__
#define DS_HOST_DEVICE __host__ __device__
#else
#define DS_HOST_DEVICE
#endif
