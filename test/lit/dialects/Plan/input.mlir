// RUN: ds-opt %s | ds-opt | FileCheck %s

// Tests all that a plan says of an input.
// CHECK:      plan.input "x" : tensor<4x8xf32>{{$}}
plan.input "x" : tensor<4x8xf32>
// CHECK-NEXT: plan.input "input_ids" : tensor<4x128xi64> tokens "same" limit 50257{{$}}
plan.input "input_ids" : tensor<4x128xi64> tokens "same" limit 50257
// CHECK-NEXT: plan.input "labels" : tensor<4x128xi64> tokens "next" limit 50257 ignored -100{{$}}
plan.input "labels" : tensor<4x128xi64> tokens "next" limit 50257 ignored -100
