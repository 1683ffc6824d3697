/* Loss and gradient of a linear-chain CRF on one thread: what crf_speed.py compares with as the lower limit.

Forward and backward recursion on probabilities with a running normalizer, exact unless a relevant probability underflows.
With -DTAGS=n the compiler knows the number of tags. The gradients are overwritten; `emissions` and `for_emissions` are
(batch, time, tags), `transitions` and `for_transitions` (tags, tags) from row to column. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

double crf(int batch, int time, int size, const float *emissions, const int *tags, const int *lengths,
           const float *transitions, float *for_emissions, float *for_transitions) {
#ifdef TAGS
    enum { K = TAGS };
#else
    const int K = size;
#endif
    const size_t row = sizeof(float[K]);
    float (*matrix)[K] = malloc(K * row), (*steps)[K] = calloc(K, row);
    float (*before)[K] = malloc(time * row), (*weights)[K] = malloc(time * row), *scale = malloc(time * sizeof(float));
    float state[K], right[K], after[K], top = transitions[0];
    double loss = 0;
    for (int i = 0; i < K * K; i++) top = fmaxf(top, transitions[i]);
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++) matrix[i][j] = expf(transitions[i * K + j] - top);
    memset(for_transitions, 0, K * row);

    for (int n = 0; n < batch; n++) {
        const float *scores = emissions + (long)n * time * K;
        const int *gold = tags + n * time, length = lengths[n];
        float *gradient = for_emissions + (long)n * time * K;
        for (int t = 0; t < length; t++, scores += K) {
            float peak = scores[0], sum = 0;
            for (int j = 0; j < K; j++) peak = fmaxf(peak, scores[j]);
            for (int j = 0; j < K; j++) weights[t][j] = expf(scores[j] - peak);
            for (int j = 0; j < K; j++) state[j] = t ? 0 : 1;
            for (int i = 0; t && i < K; i++)
                for (int j = 0; j < K; j++) state[j] += before[t - 1][i] * matrix[i][j];
            for (int j = 0; j < K; j++) sum += state[j] *= weights[t][j];
            scale[t] = 1 / sum;
            for (int j = 0; j < K; j++) before[t][j] = state[j] * scale[t];
            loss += logf(sum) + peak - scores[gold[t]] + (t ? top - transitions[gold[t - 1] * K + gold[t]] : 0);
        }
        for (int j = 0; j < K; j++) right[j] = 1;
        for (int t = length - 1; t >= 0; t--) {
            for (int j = 0; j < K; j++) gradient[t * K + j] = before[t][j] * right[j];
            gradient[t * K + gold[t]] -= 1;
            if (t == 0) break;
            for (int j = 0; j < K; j++) after[j] = right[j] * weights[t][j] * scale[t];
            for (int i = 0; i < K; i++) {
                float sum = 0, share = before[t - 1][i];
                for (int j = 0; j < K; j++) sum += matrix[i][j] * after[j], steps[i][j] += share * after[j];
                right[i] = sum;
            }
            for_transitions[gold[t - 1] * K + gold[t]] -= 1;
        }
        memset(gradient + length * K, 0, (time - length) * row);
    }
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++) for_transitions[i * K + j] += steps[i][j] * matrix[i][j];
    free(matrix), free(steps), free(before), free(weights), free(scale);
    return loss;
}
