//===- PipelineOps.td - how a model was cut into stages -------------------===//
#ifndef DS_DIST_PIPELINE_OPS_TD
#define DS_DIST_PIPELINE_OPS_TD

include "dialects/Dist/DistDialect.td"

def Dist_PipelineOp : Dist_Op<"pipeline", [NoTerminator, SingleBlock]> {
  let summary = "how the model was cut into stages";
  let description = [{
    For people, as `ds-schedule-calls` found it: nothing is executed by it. Seconds are those of the cost model, of one micro-batch;
    `bubble` is the part of a step that ranks wait. A stage sends values to stages of other ranks; `in_flight` micro-batches at most
    wait for its backward.

    ```mlir
    dist.pipeline schedule "1f1b" chunks 1 bubble 2.000000e-01 {
      dist.stage from "h.0/ln_1" to "h.5/add" forward 1.0e-03 backward 2.0e-03 weight 0.0 in_flight 2
          sends ["h.5/add"] : [tensor<4x128x64xf32>] to [1]
      dist.stage from "h.6/ln_1" to "loss" forward 1.0e-03 backward 2.0e-03 weight 0.0 in_flight 1 sends [] : [] to []
    }
    ```

    **Constraints**
    - (pipeline_c1) its body holds one dist.stage for each stage, and there are several.
  }];
  let arguments = (ins StrAttr:$schedule, I64Attr:$chunks, F64Attr:$bubble);
  let regions = (region SizedRegion<1>:$body); // pipeline_c1
  let assemblyFormat = "`schedule` $schedule `chunks` $chunks `bubble` $bubble attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Dist_StageOp : Dist_Op<"stage", [HasParent<"PipelineOp">]> {
  let summary = "one stage of a pipeline";
  let description = [{
    Named by the first and the last op of its forward.

    **Constraints**
    - (stage_c1) what it sends has as many names as types and receiving stages.
  }];
  let arguments = (ins StrAttr:$first_op, StrAttr:$last_op, F64Attr:$forward, F64Attr:$backward, F64Attr:$weight,
                       I64Attr:$in_flight, StrArrayAttr:$sent, TypeArrayAttr:$types, DenseI64ArrayAttr:$receivers); // stage_c1
  let assemblyFormat = [{
    `from` $first_op `to` $last_op `forward` $forward `backward` $backward `weight` $weight `in_flight` $in_flight
    `sends` $sent `:` $types `to` $receivers attr-dict
  }];
  let hasVerifier = 1;
}

#endif // DS_DIST_PIPELINE_OPS_TD
