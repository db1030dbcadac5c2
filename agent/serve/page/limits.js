// The latencies that a workload may limit: the field of the form, what words call it, and its fields in a workload.

export const LIMITS = Object.entries({ ttft_ms: "TTFT", tpot_ms: "TPOT", end_to_end_ms: "end to end" }).map(
  ([field, name]) => ({ field, name, most: `${field}_max`, statistic: field.replace(/_ms$/, "_statistic") }),
);

export const limitOf = (field) => LIMITS.find((one) => one.field === field);
