package evaluate

import "math"

// NDCG is the normalised discounted cumulative gain of the first k of a ranking with
// gains of 0 and 1 (Järvelin and Kekäläinen, Cumulated Gain-Based Evaluation of IR
// Techniques, 2002), from 0 to 1; 0 where nothing is relevant. No id may be ranked twice.
func NDCG(ranked []string, relevant map[string]bool, k int) float64 {
	gain, ideal := 0.0, 0.0
	for i, id := range ranked[:min(k, len(ranked))] {
		if relevant[id] {
			gain += 1 / math.Log2(float64(i)+2)
		}
	}
	for i := range min(k, len(relevant)) {
		ideal += 1 / math.Log2(float64(i)+2)
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}

// Recall is the share of what is relevant that is among the first k; 0 where nothing is.
func Recall(ranked []string, relevant map[string]bool, k int) float64 {
	if len(relevant) == 0 {
		return 0
	}
	found := 0
	for _, id := range ranked[:min(k, len(ranked))] {
		if relevant[id] {
			found++
		}
	}
	return float64(found) / float64(len(relevant))
}
