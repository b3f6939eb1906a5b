// RUN: ds-opt %s | ds-opt | FileCheck %s

// CHECK: dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 2]
dist.mesh @mesh ["pipe", "data", "tensor"] [1, 4, 2]
// CHECK: dist.mesh @nothing [] []
dist.mesh @nothing [] []
