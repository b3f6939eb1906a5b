// RUN: not ds-opt %s --ds-plan-buckets=stage=4 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not ds-opt %s --ds-plan-buckets=bucket-elements=0 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not ds-opt %s --ds-plan-buckets=for-launches 2>&1 | FileCheck %s --check-prefix=RANKS

// RANKS: error: for-launches is for one rank of axis data, and there are 2: these share parameters out by a ZeRO stage
// STAGE: error: stage is 4, bucket-elements 9223372036854775807, the persistence thresholds 0 and 9223372036854775807; they must be 0 to 3, at least 1, and not negative
// SIZE: error: stage is 0, bucket-elements 0
dist.mesh @mesh ["data"] [2]
train.variable parameter @a : tensor<8xf32> from #train.fill<0.0> {trainable}
