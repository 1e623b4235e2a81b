package connector

import (
	"fmt"
	"strconv"
	"strings"
)

// slack knows the tools of the reference server (@modelcontextprotocol/server-slack)
// and of those that kept its names. Answers are those of Slack's Web API. The names
// say whose they are: nothing more has to be known of the server.
func slack() connector {
	channel, thread := text("channel_id"), text("thread_ts")
	return connector{name: "slack", owns: func(server, declared) bool { return true }, methods: map[string]method{
		"slack_list_channels":       {[]parameter{number("limit"), text("cursor")}, listChannels},
		"slack_post_message":        {[]parameter{channel, text("text")}, postMessage},
		"slack_reply_to_thread":     {[]parameter{channel, thread, text("text")}, postMessage},
		"slack_add_reaction":        {[]parameter{channel, text("timestamp"), text("reaction")}, addReaction},
		"slack_get_channel_history": {[]parameter{channel}, channelHistory},
		"slack_get_thread_replies":  {[]parameter{channel, thread}, threadReplies},
		"slack_get_users":           {nil, listUsers},
		"slack_get_user_profile":    {[]parameter{text("user_id")}, userProfile},
	}}
}

// people and rooms are those of the workspace.
var (
	people = []string{"Ada", "Grace", "Linus"}
	rooms  = []string{"general", "random", "engineering"}
)

// key is an identifier of Slack: a letter that says of what, and ten more characters.
func (c *call) key(kind string, of ...any) string {
	return kind + strings.ToUpper(c.hex(10, append(of, kind)...))
}

// stamp is the time of a message, which identifies it in its channel.
func (c *call) stamp(of ...any) string {
	return fmt.Sprintf("%d.%06d", c.moment(of...).Unix(), c.number(0, 999_999, of...))
}

// part makes the items between the cursor of a call and its limit, and says where the
// next part begins.
func (c *call) part(key string, items int, item func(i int) any) object {
	from := after(c.args.text(maxName, "cursor"), items)
	limit, ok := c.args.number("limit")
	if !ok || limit < 1 {
		limit = items
	}
	to, next := min(from+min(limit, items), items), ""
	if to < items {
		next = cursor(to)
	}
	list := []any{}
	for i := from; i < to; i++ {
		list = append(list, item(i))
	}
	return object{"ok": true, key: list, "response_metadata": object{"next_cursor": next}}
}

func listChannels(c *call) any {
	return c.part("channels", len(rooms), func(i int) any {
		return object{
			"id": c.key("C", i), "name": rooms[i], "name_normalized": rooms[i], "is_channel": true, "is_group": false, "is_im": false, "is_private": false,
			"is_archived": false, "is_general": i == 0, "is_member": true, "created": c.moment("channel", i).Unix(), "creator": c.key("U", 0), "num_members": len(people),
			"topic": object{"value": "Mock topic", "creator": c.key("U", 0), "last_set": 0}, "purpose": object{"value": "Mock purpose", "creator": c.key("U", 0), "last_set": 0},
		}
	})
}

// message is one message of a person, by the person's place among the people.
func (c *call) message(by int, text, stamp string) object {
	return object{"type": "message", "user": c.key("U", by%len(people)), "text": text, "ts": stamp, "team": c.key("T")}
}

// channel is the one that the arguments name.
func (c *call) channel() string { return c.args.name(c.key("C", 0), "channel_id") }

func postMessage(c *call) any {
	ts := c.stamp("posted", c.place)
	m := c.message(0, c.args.text(maxText, "text"), ts)
	m["bot_id"] = c.key("B")
	if thread := c.args.text(maxName, "thread_ts"); thread != "" {
		m["thread_ts"] = thread
	}
	return object{"ok": true, "channel": c.channel(), "ts": ts, "message": m}
}

func addReaction(*call) any { return object{"ok": true} }

// channelHistory has the newest message first.
func channelHistory(c *call) any {
	channel := c.channel()
	o := c.part("messages", collection, func(i int) any {
		return c.message(i, fmt.Sprintf("Mock message %d", collection-i), c.spoken(channel, collection-i))
	})
	meta, _ := o["response_metadata"].(object)
	o["has_more"], o["pin_count"] = meta["next_cursor"] != "", 0
	return o
}

// spoken is the time of a message of a channel, which grows with its number.
func (c *call) spoken(channel string, n int) string {
	return fmt.Sprintf("%d.%06d", c.moment("channel", channel).Unix()+int64(60*n), c.number(0, 999_999, channel, n))
}

// threadReplies begins with the message that the thread is about.
func threadReplies(c *call) any {
	thread := c.args.name(c.spoken(c.channel(), 1), "thread_ts")
	o := c.part("messages", collection, func(i int) any {
		m := c.message(i, fmt.Sprintf("Mock reply %d", i), later(thread, 60*i))
		if m["thread_ts"] = thread; i == 0 {
			m["text"], m["ts"], m["reply_count"] = "Mock message", thread, collection-1
		}
		return m
	})
	o["has_more"] = false
	return o
}

// later is a message's time so many seconds after another's; of what is no time, itself.
func later(stamp string, seconds int) string {
	at, rest, _ := strings.Cut(stamp, ".")
	n, err := strconv.ParseInt(at, 10, 32)
	if err != nil {
		return stamp
	}
	return fmt.Sprintf("%d.%s", n+int64(seconds), rest)
}

func (c *call) profile(i int) object {
	name := people[i]
	return object{
		"real_name": name + " Mock", "display_name": strings.ToLower(name), "first_name": name, "last_name": "Mock", "title": "", "phone": "",
		"email": strings.ToLower(name) + "@example.com", "status_text": "", "status_emoji": "", "image_72": "https://example.com/" + name + ".png",
	}
}

func listUsers(c *call) any {
	o := c.part("members", len(people), func(i int) any {
		return object{
			"id": c.key("U", i), "team_id": c.key("T"), "name": strings.ToLower(people[i]), "real_name": people[i] + " Mock", "deleted": false,
			"is_bot": false, "is_admin": i == 0, "is_owner": i == 0, "tz": "Etc/UTC", "updated": c.moment("user", i).Unix(), "profile": c.profile(i),
		}
	})
	o["cache_ts"] = c.moment("cache").Unix()
	return o
}

// userProfile is that of the person whose identifier it is, else of anybody.
func userProfile(c *call) any {
	id := c.args.text(maxName, "user_id")
	for i := range people {
		if c.key("U", i) == id {
			return object{"ok": true, "profile": c.profile(i)}
		}
	}
	return object{"ok": true, "profile": c.profile(c.number(0, len(people)-1, id))}
}
