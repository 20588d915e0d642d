BEGIN TRANSACTION;
CREATE TABLE api_tokens (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, token_hash VARCHAR(64) NOT NULL, user_id INTEGER NOT NULL,
    name VARCHAR(100) NOT NULL, scopes VARCHAR(30) NOT NULL, task_id INTEGER, created_ms INTEGER NOT NULL,
    used_ms INTEGER, expires_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY (task_id) REFERENCES tasks (id) ON DELETE CASCADE
);
CREATE TABLE budgets (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, name VARCHAR(100) NOT NULL,
    max_open_sats INTEGER NOT NULL, max_fills INTEGER NOT NULL, spend_cap_sats INTEGER NOT NULL,
    spend_cap_per_day_sats INTEGER NOT NULL, created_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
INSERT INTO "budgets" VALUES(1,1,'all cats',900000,9,5000000,0,1790000000000);
CREATE TABLE challenges (
    id VARCHAR(36) NOT NULL PRIMARY KEY, address VARCHAR(90) NOT NULL, message TEXT NOT NULL, user_id INTEGER,
    approves TEXT, client_ip VARCHAR(45) NOT NULL, tries INTEGER NOT NULL, expires_ms INTEGER NOT NULL, used_ms INTEGER,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE controls (
    scope VARCHAR(6) NOT NULL, subject_id INTEGER NOT NULL, state VARCHAR(6) NOT NULL, by_user INTEGER,
    set_ms INTEGER NOT NULL,
    PRIMARY KEY (scope, subject_id)
) WITHOUT ROWID;
INSERT INTO "controls" VALUES('task',2,'reduce',1,1790000000640);
CREATE TABLE cycles (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, task_id INTEGER NOT NULL, time_ms INTEGER NOT NULL,
    action TEXT NOT NULL, error TEXT, detail TEXT NOT NULL
);
CREATE TABLE deliveries (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, hook_id INTEGER NOT NULL, event_id INTEGER,
    event VARCHAR(20) NOT NULL, task_id INTEGER, body TEXT NOT NULL, state VARCHAR(10) NOT NULL,
    tries INTEGER NOT NULL, due_ms INTEGER NOT NULL, created_ms INTEGER NOT NULL, done_ms INTEGER, status INTEGER,
    error VARCHAR(200),
    FOREIGN KEY (hook_id) REFERENCES hooks (id) ON DELETE CASCADE
);
CREATE TABLE events (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, task_id INTEGER,
    event VARCHAR(20) NOT NULL, at_ms INTEGER NOT NULL, is_passing INTEGER NOT NULL, fact VARCHAR(80),
    data TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,1,1,'task',1790000000000,1,NULL,'{"kind":"bidding","change":"created"}');
INSERT INTO "events" VALUES(2,1,2,'task',1790000000000,1,NULL,'{"kind":"bidding","change":"created"}');
INSERT INTO "events" VALUES(3,1,3,'task',1790000000000,1,NULL,'{"kind":"bidding","change":"created"}');
INSERT INTO "events" VALUES(4,2,4,'task',1790000000000,1,NULL,'{"kind":"bidding","change":"created"}');
INSERT INTO "events" VALUES(5,2,5,'task',1790000000000,1,NULL,'{"kind":"bidding","change":"created"}');
INSERT INTO "events" VALUES(6,1,1,'order',1790000000033,1,NULL,'{"order":7,"venue":"magiceden","slug":"cats","trait":{"type":"Fur","value":"Gold"},"price":103000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(7,1,2,'order',1790000000033,1,NULL,'{"order":8,"venue":"ordnet","slug":"dogs","trait":null,"price":53000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(8,1,1,'order',1790000000043,1,NULL,'{"order":9,"venue":"magiceden","slug":"cats","trait":null,"price":104000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(9,1,2,'order',1790000000043,1,NULL,'{"order":10,"venue":"ordnet","slug":"dogs","trait":null,"price":54000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(10,1,1,'order',1790000000063,1,NULL,'{"order":13,"venue":"magiceden","slug":"cats","trait":null,"price":106000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(11,1,2,'order',1790000000063,1,NULL,'{"order":14,"venue":"ordnet","slug":"dogs","trait":null,"price":56000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(12,1,3,'order',1790000000103,1,NULL,'{"order":15,"venue":"magiceden","slug":"birds","trait":null,"price":70000,"quantity":"1","dry_run":true,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(13,2,4,'order',1790000000113,1,NULL,'{"order":16,"venue":"magiceden","slug":"cats","trait":null,"price":110000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(14,2,5,'order',1790000000118,1,NULL,'{"order":17,"venue":"magiceden","slug":"fish","trait":null,"price":20000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(15,1,1,'order',1790000000123,1,NULL,'{"order":18,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(16,1,1,'order',1790000000130,1,NULL,'{"order":18,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"closed","close_reason":"cancelled"}');
INSERT INTO "events" VALUES(17,1,1,'order',1790000000123,1,NULL,'{"order":19,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(18,1,1,'order',1790000000130,1,NULL,'{"order":19,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"closed","close_reason":"expired"}');
INSERT INTO "events" VALUES(19,1,1,'order',1790000000123,1,NULL,'{"order":20,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(20,1,1,'order',1790000000130,1,NULL,'{"order":20,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"closed","close_reason":"refused"}');
INSERT INTO "events" VALUES(21,1,1,'order',1790000000123,1,NULL,'{"order":21,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(22,1,1,'order',1790000000130,1,NULL,'{"order":21,"venue":"magiceden","slug":"cats","trait":null,"price":30000,"quantity":"1","dry_run":false,"state":"closed","close_reason":"lost"}');
INSERT INTO "events" VALUES(23,1,1,'order',1790000000143,1,NULL,'{"order":22,"venue":"magiceden","slug":"cats","trait":null,"price":90000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(24,1,1,'fill',1790000000200,0,NULL,'{"fill":"buy-22","order":22,"venue":"magiceden","slug":"cats","trait":null,"price":90000,"quantity":"1","dry_run":false,"sale_id":"sale-1","filled_ms":1790000000190,"inscription_id":"ababababababababababababababababababababababababababababababababi0"}');
INSERT INTO "events" VALUES(25,1,2,'order',1790000000153,1,NULL,'{"order":23,"venue":"ordnet","slug":"dogs","trait":null,"price":40000,"quantity":"1","dry_run":false,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(26,1,2,'fill',1790000000210,0,NULL,'{"fill":"buy-23","order":23,"venue":"ordnet","slug":"dogs","trait":null,"price":20000,"quantity":"0.5","dry_run":false,"sale_id":"sale-2","filled_ms":1790000000210,"inscription_id":"cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdi0"}');
INSERT INTO "events" VALUES(27,1,3,'order',1790000000163,1,NULL,'{"order":24,"venue":"magiceden","slug":"birds","trait":null,"price":60000,"quantity":"1","dry_run":true,"state":"live","close_reason":null}');
INSERT INTO "events" VALUES(28,1,3,'fill',1790000000220,0,NULL,'{"fill":"buy-24","order":24,"venue":"magiceden","slug":"birds","trait":null,"price":60000,"quantity":"1","dry_run":true,"sale_id":"sale-1","filled_ms":1790000000220,"inscription_id":null}');
INSERT INTO "events" VALUES(29,2,5,'task',1790000000320,1,NULL,'{"kind":"bidding","change":"deleted"}');
INSERT INTO "events" VALUES(30,1,6,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(31,1,7,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(32,1,8,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(33,1,9,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(34,1,9,'listed',1790000000433,0,NULL,'{"listing":4,"venue":"magiceden","slug":"cats","inscription_id":"0000000000000000000000000000000000000000000000000000000000000004i0","price":300003}');
INSERT INTO "events" VALUES(35,1,10,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(36,1,10,'listed',1790000000443,0,NULL,'{"listing":5,"venue":"magiceden","slug":"cats","inscription_id":"0000000000000000000000000000000000000000000000000000000000000005i0","price":300004}');
INSERT INTO "events" VALUES(37,1,11,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(38,1,12,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(39,1,12,'listed',1790000000463,0,NULL,'{"listing":7,"venue":"magiceden","slug":"cats","inscription_id":"0000000000000000000000000000000000000000000000000000000000000007i0","price":300006}');
INSERT INTO "events" VALUES(40,1,13,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(41,1,13,'listed',1790000000503,0,NULL,'{"listing":8,"venue":"satflow","slug":"dogs","inscription_id":"7777777777777777777777777777777777777777777777777777777777777777i0","price":500000}');
INSERT INTO "events" VALUES(42,1,13,'listing',1790000000510,1,NULL,'{"listing":8,"venue":"satflow","slug":"dogs","inscription_id":"7777777777777777777777777777777777777777777777777777777777777777i0","price":500000,"state":"closed","close_reason":"replaced"}');
INSERT INTO "events" VALUES(43,1,14,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(44,1,14,'listed',1790000000523,0,NULL,'{"listing":10,"venue":"satflow","slug":"dogs","inscription_id":"8888888888888888888888888888888888888888888888888888888888888888i0","price":600000}');
INSERT INTO "events" VALUES(45,1,14,'sold',1790000000530,0,NULL,'{"listing":10,"venue":"satflow","slug":"dogs","inscription_id":"8888888888888888888888888888888888888888888888888888888888888888i0","price":600000,"sale_id":"sale-9","sold_ms":1790000000529,"txid":"efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef","fill":"sell-10","venue_fee":6000}');
INSERT INTO "events" VALUES(46,1,15,'task',1790000000000,1,NULL,'{"kind":"listing","change":"created"}');
INSERT INTO "events" VALUES(47,1,15,'listed',1790000000543,0,NULL,'{"listing":11,"venue":"satflow","slug":"dogs","inscription_id":"9999999999999999999999999999999999999999999999999999999999999999i0","price":600000}');
INSERT INTO "events" VALUES(48,1,15,'listing',1790000000550,1,NULL,'{"listing":11,"venue":"satflow","slug":"dogs","inscription_id":"9999999999999999999999999999999999999999999999999999999999999999i0","price":600000,"state":"closed","close_reason":"lost"}');
INSERT INTO "events" VALUES(49,1,15,'task',1790000000560,1,NULL,'{"kind":"listing","change":"deleted"}');
INSERT INTO "events" VALUES(50,1,NULL,'wallet',1790000000600,1,NULL,'{"withdrawal":1,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(51,1,NULL,'wallet',1790000000601,1,NULL,'{"withdrawal":2,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(52,1,NULL,'wallet',1790000000610,1,NULL,'{"withdrawal":2,"source":"payment","inscription_id":null,"state":"signed","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000021","reason":null}');
INSERT INTO "events" VALUES(53,1,NULL,'wallet',1790000000602,1,NULL,'{"withdrawal":3,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(54,1,NULL,'wallet',1790000000610,1,NULL,'{"withdrawal":3,"source":"payment","inscription_id":null,"state":"signed","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000022","reason":null}');
INSERT INTO "events" VALUES(55,1,NULL,'wallet',1790000000620,1,NULL,'{"withdrawal":3,"source":"payment","inscription_id":null,"state":"submitted","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000022","reason":null}');
INSERT INTO "events" VALUES(56,1,NULL,'wallet',1790000000603,1,NULL,'{"withdrawal":4,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(57,1,NULL,'wallet',1790000000610,1,NULL,'{"withdrawal":4,"source":"payment","inscription_id":null,"state":"signed","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000023","reason":null}');
INSERT INTO "events" VALUES(58,1,NULL,'wallet',1790000000620,1,NULL,'{"withdrawal":4,"source":"payment","inscription_id":null,"state":"unknown","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000023","reason":null}');
INSERT INTO "events" VALUES(59,1,NULL,'wallet',1790000000604,1,NULL,'{"withdrawal":5,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(60,1,NULL,'wallet',1790000000610,1,NULL,'{"withdrawal":5,"source":"payment","inscription_id":null,"state":"signed","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000024","reason":null}');
INSERT INTO "events" VALUES(61,1,NULL,'wallet',1790000000620,1,NULL,'{"withdrawal":5,"source":"payment","inscription_id":null,"state":"submitted","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000024","reason":null}');
INSERT INTO "events" VALUES(62,1,NULL,'wallet',1790000000620,1,NULL,'{"withdrawal":5,"source":"payment","inscription_id":null,"state":"confirmed","sent":10000,"fee":500,"txid":"0000000000000000000000000000000000000000000000000000000000000024","reason":null}');
INSERT INTO "events" VALUES(63,1,NULL,'wallet',1790000000605,1,NULL,'{"withdrawal":6,"source":"payment","inscription_id":null,"state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(64,1,NULL,'wallet',1790000000620,1,NULL,'{"withdrawal":6,"source":"payment","inscription_id":null,"state":"refused","sent":null,"fee":null,"txid":null,"reason":"too low"}');
INSERT INTO "events" VALUES(65,1,NULL,'wallet',1790000000630,1,NULL,'{"withdrawal":7,"source":"escrow","inscription_id":"7777777777777777777777777777777777777777777777777777777777777777i0","state":"reserved","sent":null,"fee":null,"txid":null,"reason":null}');
INSERT INTO "events" VALUES(66,1,2,'control',1790000000640,1,NULL,'{"scope":"task","state":"reduce","by":"you"}');
CREATE TABLE floor_samples (
    kind VARCHAR(10) NOT NULL, slug_key VARCHAR(200) NOT NULL, measure TEXT NOT NULL, minute INTEGER NOT NULL,
    reference TEXT NOT NULL, low TEXT NOT NULL, low_ms INTEGER NOT NULL, high TEXT NOT NULL,
    PRIMARY KEY (kind, slug_key, measure, minute)
) WITHOUT ROWID;
CREATE TABLE forgotten_events (
    user_id INTEGER NOT NULL PRIMARY KEY, lasting_id INTEGER NOT NULL, passing_id INTEGER NOT NULL
);
CREATE TABLE hooks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, kind VARCHAR(10) NOT NULL,
    shown VARCHAR(300) NOT NULL, has_secret INTEGER NOT NULL, receiver VARCHAR(32) NOT NULL,
    events VARCHAR(200) NOT NULL, min_interval_s INTEGER NOT NULL, cursor INTEGER NOT NULL,
    is_failing INTEGER NOT NULL, lost INTEGER NOT NULL, sent_ms INTEGER, created_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE inscriptions (
    id VARCHAR(80) NOT NULL PRIMARY KEY, collection_id VARCHAR(200), image_url VARCHAR(500), detail TEXT,
    fetched_ms INTEGER NOT NULL
);
CREATE TABLE leases (
    name VARCHAR(30) NOT NULL PRIMARY KEY, home VARCHAR(100) NOT NULL, machine VARCHAR(100) NOT NULL,
    address VARCHAR(260) NOT NULL, token INTEGER NOT NULL, until_ms INTEGER NOT NULL, seconds INTEGER NOT NULL,
    former_home VARCHAR(100) NOT NULL
);
CREATE TABLE listings (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(64) NOT NULL, task_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL, venue VARCHAR(30) NOT NULL, wallet VARCHAR(90) NOT NULL,
    inscription_id VARCHAR(80) NOT NULL, slug VARCHAR(200), outpoint VARCHAR(75) NOT NULL,
    price_sats INTEGER NOT NULL, token INTEGER NOT NULL, revision INTEGER NOT NULL, state VARCHAR(10) NOT NULL,
    close_reason VARCHAR(10), venue_id VARCHAR(128), misses INTEGER NOT NULL, proceeds_sats INTEGER,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, signed_ms INTEGER, listed_ms INTEGER, closed_ms INTEGER,
    sale_id VARCHAR(100), sold_ms INTEGER, venue_fee_sats INTEGER, txid VARCHAR(64)
);
INSERT INTO "listings" VALUES(1,'0000000000000000000000000000000000000000000000000000000000000019',6,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000001i0','cats','0000000000000000000000000000000000000000000000000000000000000001:0',300000,1,1,'reserved',NULL,NULL,0,NULL,1790000000400,1790000000400,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(2,'000000000000000000000000000000000000000000000000000000000000001a',7,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000002i0','cats','0000000000000000000000000000000000000000000000000000000000000002:0',300001,1,1,'signed',NULL,NULL,0,NULL,1790000000410,1790000000411,1790000000411,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(3,'000000000000000000000000000000000000000000000000000000000000001b',8,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000003i0','cats','0000000000000000000000000000000000000000000000000000000000000003:0',300002,1,1,'submitted',NULL,NULL,0,NULL,1790000000420,1790000000422,1790000000421,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(4,'000000000000000000000000000000000000000000000000000000000000001c',9,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000004i0','cats','0000000000000000000000000000000000000000000000000000000000000004:0',300003,1,1,'live',NULL,'L4',0,NULL,1790000000430,1790000000433,1790000000431,1790000000433,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(5,'000000000000000000000000000000000000000000000000000000000000001d',10,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000005i0','cats','0000000000000000000000000000000000000000000000000000000000000005:0',300004,1,1,'cancelling',NULL,'L5',0,NULL,1790000000440,1790000000444,1790000000441,1790000000443,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(6,'000000000000000000000000000000000000000000000000000000000000001e',11,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000006i0','cats','0000000000000000000000000000000000000000000000000000000000000006:0',300005,1,1,'unknown',NULL,NULL,0,NULL,1790000000450,1790000000453,1790000000451,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(7,'000000000000000000000000000000000000000000000000000000000000001f',12,1,'magiceden','bc1pvault','0000000000000000000000000000000000000000000000000000000000000007i0','cats','0000000000000000000000000000000000000000000000000000000000000007:0',300006,1,1,'unknown',NULL,'L7',0,NULL,1790000000460,1790000000465,1790000000461,1790000000463,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(8,'0000000000000000000000000000000000000000000000000000000000000020',13,1,'satflow','bc1pvault','7777777777777777777777777777777777777777777777777777777777777777i0','dogs','7777777777777777777777777777777777777777777777777777777777777777:0',500000,1,1,'closed','replaced','L8',0,NULL,1790000000500,1790000000510,1790000000501,1790000000503,1790000000510,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(9,'0000000000000000000000000000000000000000000000000000000000000021',13,1,'satflow','bc1pvault','7777777777777777777777777777777777777777777777777777777777777777i0','dogs','7777777777777777777777777777777777777777777777777777777777777777:0',450000,1,1,'submitted',NULL,NULL,0,NULL,1790000000510,1790000000512,1790000000511,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "listings" VALUES(10,'0000000000000000000000000000000000000000000000000000000000000022',14,1,'satflow','bc1pvault','8888888888888888888888888888888888888888888888888888888888888888i0','dogs','8888888888888888888888888888888888888888888888888888888888888888:0',600000,1,1,'closed','sold','L10',0,600000,1790000000520,1790000000530,1790000000521,1790000000523,1790000000530,'sale-9',1790000000529,6000,'efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef');
INSERT INTO "listings" VALUES(11,'0000000000000000000000000000000000000000000000000000000000000023',15,1,'satflow','bc1pvault','9999999999999999999999999999999999999999999999999999999999999999i0','dogs','9999999999999999999999999999999999999999999999999999999999999999:0',600000,1,1,'closed','lost','L11',0,NULL,1790000000540,1790000000550,1790000000541,1790000000543,1790000000550,NULL,NULL,NULL,NULL);
CREATE TABLE month_counts (venue VARCHAR(30) NOT NULL PRIMARY KEY, kept TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(32) NOT NULL, task_id INTEGER NOT NULL,
    user_id INTEGER NOT NULL, venue VARCHAR(30) NOT NULL, wallet VARCHAR(90) NOT NULL, slug VARCHAR(200) NOT NULL,
    price_sats INTEGER NOT NULL, quantity VARCHAR(60) NOT NULL, expires_ms INTEGER NOT NULL, token INTEGER NOT NULL,
    state VARCHAR(10) NOT NULL, close_reason VARCHAR(10), venue_id VARCHAR(128), misses INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, trait_type VARCHAR(200) NOT NULL,
    trait_value VARCHAR(200) NOT NULL, dry_run INTEGER NOT NULL, closed_ms INTEGER, sale_id VARCHAR(100),
    coins TEXT NOT NULL, filled_ms INTEGER, inscription_id VARCHAR(80), floor_at_fill TEXT, network_fee_sats INTEGER,
    receive VARCHAR(90) NOT NULL, autolist_state VARCHAR(10), autolist_reason TEXT, autolist_task INTEGER,
    sold_sats INTEGER, sold_quantity VARCHAR(60), budget_id INTEGER
);
INSERT INTO "orders" VALUES(1,'00000000000000000000000000000001',1,1,'magiceden','bc1qadapay','cats',100000,'1',1790003600000,1,'reserved',NULL,NULL,0,1790000000000,1790000000000,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(2,'00000000000000000000000000000002',2,1,'ordnet','bc1qadapay','dogs',50000,'1',1790003600001,1,'reserved',NULL,NULL,0,1790000000000,1790000000000,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000000:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(3,'00000000000000000000000000000003',1,1,'magiceden','bc1qadapay','cats',101000,'1',1790003600002,1,'signed',NULL,NULL,0,1790000000010,1790000000011,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(4,'00000000000000000000000000000004',2,1,'ordnet','bc1qadapay','dogs',51000,'1',1790003600003,1,'signed',NULL,NULL,0,1790000000010,1790000000011,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000001:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(5,'00000000000000000000000000000005',1,1,'magiceden','bc1qadapay','cats',102000,'1',1790003600004,1,'submitted',NULL,NULL,0,1790000000020,1790000000022,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(6,'00000000000000000000000000000006',2,1,'ordnet','bc1qadapay','dogs',52000,'1',1790003600005,1,'submitted',NULL,NULL,0,1790000000020,1790000000022,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000002:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(7,'00000000000000000000000000000007',1,1,'magiceden','bc1qadapay','cats',103000,'1',1790003600006,1,'live',NULL,'v7',2,1790000000030,1790000000310,'Fur','Gold',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(8,'00000000000000000000000000000008',2,1,'ordnet','bc1qadapay','dogs',53000,'1',1790003600007,1,'live',NULL,'v8',0,1790000000030,1790000000033,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000003:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(9,'00000000000000000000000000000009',1,1,'magiceden','bc1qadapay','cats',104000,'1',1790003600008,1,'cancelling',NULL,'v9',0,1790000000040,1790000000044,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(10,'0000000000000000000000000000000a',2,1,'ordnet','bc1qadapay','dogs',54000,'1',1790003600009,1,'cancelling',NULL,'v10',0,1790000000040,1790000000044,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000004:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(11,'0000000000000000000000000000000b',1,1,'magiceden','bc1qadapay','cats',105000,'1',1790003600010,1,'unknown',NULL,NULL,0,1790000000050,1790000000053,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(12,'0000000000000000000000000000000c',2,1,'ordnet','bc1qadapay','dogs',55000,'1',1790003600011,1,'unknown',NULL,NULL,0,1790000000050,1790000000053,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000005:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(13,'0000000000000000000000000000000d',1,1,'magiceden','bc1qadapay','cats',106000,'1',1790003600012,1,'unknown',NULL,'v13',0,1790000000060,1790000000065,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(14,'0000000000000000000000000000000e',2,1,'ordnet','bc1qadapay','dogs',56000,'1',1790003600013,1,'unknown',NULL,'v14',0,1790000000060,1790000000065,'','',0,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000006:1',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(15,'0000000000000000000000000000000f',3,1,'magiceden','bc1qadapay','birds',70000,'1',1790003600014,1,'live',NULL,'v15',0,1790000000100,1790000000103,'','',1,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(16,'00000000000000000000000000000010',4,2,'magiceden','bc1qbobpay','cats',110000,'1',1790003600000,1,'live',NULL,'v16',0,1790000000110,1790000000113,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(17,'00000000000000000000000000000011',5,2,'magiceden','bc1qbobpay','fish',20000,'1',1790003600001,1,'live',NULL,'v17',0,1790000000115,1790000000118,'','',0,NULL,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "orders" VALUES(18,'00000000000000000000000000000012',1,1,'magiceden','bc1qadapay','cats',30000,'1',1790003600015,1,'closed','cancelled','v18',0,1790000000120,1790000000130,'','',0,1790000000130,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(19,'00000000000000000000000000000013',1,1,'magiceden','bc1qadapay','cats',30000,'1',1790003600016,1,'closed','expired','v19',0,1790000000120,1790000000130,'','',0,1790000000130,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(20,'00000000000000000000000000000014',1,1,'magiceden','bc1qadapay','cats',30000,'1',1790003600017,1,'closed','refused','v20',0,1790000000120,1790000000130,'','',0,1790000000130,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(21,'00000000000000000000000000000015',1,1,'magiceden','bc1qadapay','cats',30000,'1',1790003600018,1,'closed','lost','v21',0,1790000000120,1790000000130,'','',0,1790000000130,NULL,'',NULL,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(22,'00000000000000000000000000000016',1,1,'magiceden','bc1qadapay','cats',90000,'1',1790003600019,1,'closed','filled','v22',0,1790000000140,1790000000200,'','',0,1790000000200,'sale-1','',1790000000190,'ababababababababababababababababababababababababababababababababi0','123456.5',400,'bc1pvault','waiting',NULL,NULL,NULL,NULL,1);
INSERT INTO "orders" VALUES(23,'00000000000000000000000000000017',2,1,'ordnet','bc1qadapay','dogs',40000,'1',1790003600020,1,'closed','filled','v23',0,1790000000150,1790000000210,'','',0,1790000000210,'sale-2','',1790000000210,'cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdi0',NULL,NULL,'bc1pvault',NULL,NULL,NULL,20000,'0.5',NULL);
INSERT INTO "orders" VALUES(24,'00000000000000000000000000000018',3,1,'magiceden','bc1qadapay','birds',60000,'1',1790003600021,1,'closed','filled','v24',0,1790000000160,1790000000220,'','',1,1790000000220,'sale-1','',1790000000220,NULL,NULL,NULL,'bc1pvault',NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE presets (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, name VARCHAR(100) NOT NULL,
    config TEXT NOT NULL, created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
INSERT INTO "presets" VALUES(1,1,'mine','{"slug": "cats"}',1790000000000,1790000000000);
CREATE TABLE "schema_migration" ("id" INTEGER NOT NULL PRIMARY KEY, "name" VARCHAR(255) NOT NULL, "applied" DATETIME NOT NULL);
INSERT INTO "schema_migration" VALUES(1,'0001_tables','2026-11-28 23:37:38.731183');
INSERT INTO "schema_migration" VALUES(2,'0002_looked_up_details','2026-11-28 23:37:38.732034');
CREATE TABLE sessions (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, token_hash VARCHAR(64) NOT NULL, user_id INTEGER NOT NULL,
    client VARCHAR(60) NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
CREATE TABLE subscriptions (
    user_id INTEGER NOT NULL PRIMARY KEY, plan VARCHAR(50) NOT NULL, started_ms INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE
);
INSERT INTO "subscriptions" VALUES(1,'beta',1790000000000,1821536000000);
INSERT INTO "subscriptions" VALUES(2,'beta',1790000000000,1821536000000);
CREATE TABLE task_samples (
    task_id INTEGER NOT NULL, step INTEGER NOT NULL, minute INTEGER NOT NULL, floor TEXT, reference TEXT,
    best_bid TEXT, own_top TEXT, own_low TEXT, guard_sats INTEGER, open_count INTEGER NOT NULL,
    exposure_sats INTEGER NOT NULL,
    PRIMARY KEY (task_id, step, minute), FOREIGN KEY (task_id) REFERENCES tasks (id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE TABLE tasks (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, user_id INTEGER NOT NULL, kind VARCHAR(10) NOT NULL,
    venue VARCHAR(30) NOT NULL, config TEXT NOT NULL, revision INTEGER NOT NULL, desired VARCHAR(10) NOT NULL,
    observed VARCHAR(10) NOT NULL, token INTEGER NOT NULL, pid INTEGER, exit_status VARCHAR(100),
    restarts INTEGER NOT NULL, cycles INTEGER NOT NULL, memory TEXT NOT NULL, error_cycles INTEGER NOT NULL,
    told TEXT NOT NULL, last_cycle_ms INTEGER, last_cycle_action TEXT, last_error TEXT, last_error_code VARCHAR(30),
    last_error_params TEXT, created_ms INTEGER NOT NULL, deleted_ms INTEGER, tags TEXT NOT NULL, type VARCHAR(10),
    slug VARCHAR(200), slug_key VARCHAR(200), inscription_id VARCHAR(80), collection_id VARCHAR(200),
    source_order INTEGER, budget_id INTEGER,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE CASCADE,
    FOREIGN KEY (budget_id) REFERENCES budgets (id),
    CHECK ((kind = 'bidding') = (type IS NOT NULL AND slug IS NOT NULL AND slug_key IS NOT NULL)),
    CHECK ((kind = 'listing') = (inscription_id IS NOT NULL)),
    CHECK (kind = 'bidding' OR budget_id IS NULL)
);
INSERT INTO "tasks" VALUES(1,1,'bidding','magiceden','{"active_hours": null, "bid_count": 20, "bid_expiry_minutes": null, "bid_fixed_high": 50000, "bid_fixed_low": 10000, "bid_levels": null, "bid_mode": "percent", "bid_percent_high": "0.75", "bid_percent_low": "0.15", "bid_type": "collection", "budget_id": null, "cancel_on_stop": true, "deliver_to": "ordinalsAddress", "depth_sats": 1000000, "dry_run": false, "fee_rate": "halfHourFee", "hardcap_sats": 200000, "ignore_addresses": [], "keep_within_gap": "0.25", "ladder_shape": "even", "loop_seconds": null, "max_bid_total": 2000000, "max_fills": 0, "max_fills_per_day": 0, "min_age_seconds": null, "on_fill": {"autolist": "{\"allow_below_reference\": false, \"cost_sats\": null, \"dry_run\": false, \"ignore_addresses\": [], \"loop_seconds\": null, \"min_margin\": \"0\", \"min_price_sats\": 0, \"price_mode\": \"percent\", \"price_percent\": \"1.05\", \"price_sats\": 0, \"price_schedule\": [], \"reference\": \"floor\", \"trait_type\": \"\", \"trait_value\": \"\", \"undercut_sats\": 1000}", "max_open": 10, "start": true}, "only_bid_if_highest": false, "only_while_floor_between": null, "outbid_amount": 1000, "outbid_enabled": false, "outbid_mode": "fixed", "outbid_percent": "0.01", "pause_after_fill_seconds": 60, "pause_on_floor_drop": null, "quantity": "1", "quantity_mode": "quantity", "replace_mode": "auto", "sats_per_order": 0, "slug": "cats", "spend_cap_per_day_sats": 0, "spend_cap_sats": 0, "trait_type": "", "trait_value": "", "type": "ordinals", "update_bid_enabled": true, "update_tolerance": null, "use_vwap": false}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]','ordinals','cats','cats',NULL,NULL,NULL,1);
INSERT INTO "tasks" VALUES(2,1,'bidding','ordnet','{"active_hours": null, "bid_count": 20, "bid_expiry_minutes": null, "bid_fixed_high": 50000, "bid_fixed_low": 10000, "bid_levels": null, "bid_mode": "percent", "bid_percent_high": "0.75", "bid_percent_low": "0.15", "bid_type": "collection", "budget_id": null, "cancel_on_stop": true, "deliver_to": "ordinalsAddress", "depth_sats": 1000000, "dry_run": false, "fee_rate": "halfHourFee", "hardcap_sats": 200000, "ignore_addresses": [], "keep_within_gap": "0.25", "ladder_shape": "even", "loop_seconds": null, "max_bid_total": 2000000, "max_fills": 0, "max_fills_per_day": 0, "min_age_seconds": null, "on_fill": null, "only_bid_if_highest": false, "only_while_floor_between": null, "outbid_amount": 1000, "outbid_enabled": false, "outbid_mode": "fixed", "outbid_percent": "0.01", "pause_after_fill_seconds": 60, "pause_on_floor_drop": null, "quantity": "1", "quantity_mode": "quantity", "replace_mode": "auto", "sats_per_order": 0, "slug": "dogs", "spend_cap_per_day_sats": 0, "spend_cap_sats": 0, "trait_type": "", "trait_value": "", "type": "ordinals", "update_bid_enabled": true, "update_tolerance": null, "use_vwap": false}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]','ordinals','dogs','dogs',NULL,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES(3,1,'bidding','magiceden','{"active_hours": null, "bid_count": 20, "bid_expiry_minutes": null, "bid_fixed_high": 50000, "bid_fixed_low": 10000, "bid_levels": null, "bid_mode": "percent", "bid_percent_high": "0.75", "bid_percent_low": "0.15", "bid_type": "collection", "budget_id": null, "cancel_on_stop": true, "deliver_to": "ordinalsAddress", "depth_sats": 1000000, "dry_run": true, "fee_rate": "halfHourFee", "hardcap_sats": 200000, "ignore_addresses": [], "keep_within_gap": "0.25", "ladder_shape": "even", "loop_seconds": null, "max_bid_total": 2000000, "max_fills": 0, "max_fills_per_day": 0, "min_age_seconds": null, "on_fill": null, "only_bid_if_highest": false, "only_while_floor_between": null, "outbid_amount": 1000, "outbid_enabled": false, "outbid_mode": "fixed", "outbid_percent": "0.01", "pause_after_fill_seconds": 60, "pause_on_floor_drop": null, "quantity": "1", "quantity_mode": "quantity", "replace_mode": "auto", "sats_per_order": 0, "slug": "birds", "spend_cap_per_day_sats": 0, "spend_cap_sats": 0, "trait_type": "", "trait_value": "", "type": "ordinals", "update_bid_enabled": true, "update_tolerance": null, "use_vwap": false}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]','ordinals','birds','birds',NULL,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES(4,2,'bidding','magiceden','{"active_hours": null, "bid_count": 20, "bid_expiry_minutes": null, "bid_fixed_high": 50000, "bid_fixed_low": 10000, "bid_levels": null, "bid_mode": "percent", "bid_percent_high": "0.75", "bid_percent_low": "0.15", "bid_type": "collection", "budget_id": null, "cancel_on_stop": true, "deliver_to": "ordinalsAddress", "depth_sats": 1000000, "dry_run": false, "fee_rate": "halfHourFee", "hardcap_sats": 200000, "ignore_addresses": [], "keep_within_gap": "0.25", "ladder_shape": "even", "loop_seconds": null, "max_bid_total": 2000000, "max_fills": 0, "max_fills_per_day": 0, "min_age_seconds": null, "on_fill": null, "only_bid_if_highest": false, "only_while_floor_between": null, "outbid_amount": 1000, "outbid_enabled": false, "outbid_mode": "fixed", "outbid_percent": "0.01", "pause_after_fill_seconds": 60, "pause_on_floor_drop": null, "quantity": "1", "quantity_mode": "quantity", "replace_mode": "auto", "sats_per_order": 0, "slug": "cats", "spend_cap_per_day_sats": 0, "spend_cap_sats": 0, "trait_type": "", "trait_value": "", "type": "ordinals", "update_bid_enabled": true, "update_tolerance": null, "use_vwap": false}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]','ordinals','cats','cats',NULL,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES(5,2,'bidding','magiceden','{"active_hours": null, "bid_count": 20, "bid_expiry_minutes": null, "bid_fixed_high": 50000, "bid_fixed_low": 10000, "bid_levels": null, "bid_mode": "percent", "bid_percent_high": "0.75", "bid_percent_low": "0.15", "bid_type": "collection", "budget_id": null, "cancel_on_stop": true, "deliver_to": "ordinalsAddress", "depth_sats": 1000000, "dry_run": false, "fee_rate": "halfHourFee", "hardcap_sats": 200000, "ignore_addresses": [], "keep_within_gap": "0.25", "ladder_shape": "even", "loop_seconds": null, "max_bid_total": 2000000, "max_fills": 0, "max_fills_per_day": 0, "min_age_seconds": null, "on_fill": null, "only_bid_if_highest": false, "only_while_floor_between": null, "outbid_amount": 1000, "outbid_enabled": false, "outbid_mode": "fixed", "outbid_percent": "0.01", "pause_after_fill_seconds": 60, "pause_on_floor_drop": null, "quantity": "1", "quantity_mode": "quantity", "replace_mode": "auto", "sats_per_order": 0, "slug": "fish", "spend_cap_per_day_sats": 0, "spend_cap_sats": 0, "trait_type": "", "trait_value": "", "type": "ordinals", "update_bid_enabled": true, "update_tolerance": null, "use_vwap": false}',1,'stopped','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,1790000000320,'[]','ordinals','fish','fish',NULL,NULL,NULL,NULL);
INSERT INTO "tasks" VALUES(6,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000001i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(7,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000002i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(8,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000003i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(9,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000004i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(10,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000005i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(11,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000006i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(12,1,'listing','magiceden','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'0000000000000000000000000000000000000000000000000000000000000007i0','cats',NULL,NULL);
INSERT INTO "tasks" VALUES(13,1,'listing','satflow','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'7777777777777777777777777777777777777777777777777777777777777777i0','dogs',NULL,NULL);
INSERT INTO "tasks" VALUES(14,1,'listing','satflow','{}',1,'running','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,NULL,'[]',NULL,NULL,NULL,'8888888888888888888888888888888888888888888888888888888888888888i0','dogs',NULL,NULL);
INSERT INTO "tasks" VALUES(15,1,'listing','satflow','{}',1,'stopped','stopped',1,NULL,NULL,0,0,'{}',0,'',NULL,NULL,NULL,NULL,NULL,1790000000000,1790000000560,'[]',NULL,NULL,NULL,'9999999999999999999999999999999999999999999999999999999999999999i0','dogs',NULL,NULL);
CREATE TABLE users (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, address VARCHAR(90) NOT NULL,
    ordinals_address VARCHAR(90) NOT NULL, display_name VARCHAR(100), max_exposure INTEGER, max_hardcap INTEGER,
    created_ms INTEGER NOT NULL
);
INSERT INTO "users" VALUES(1,'bc1qada','bc1qada',NULL,NULL,NULL,1790000000000);
INSERT INTO "users" VALUES(2,'bc1qbob','bc1qbob',NULL,NULL,NULL,1790000000000);
CREATE TABLE wallet_contents (
    address VARCHAR(90) NOT NULL PRIMARY KEY, items TEXT NOT NULL, fetched_ms INTEGER NOT NULL
);
CREATE TABLE whitelist (
    address VARCHAR(90) NOT NULL PRIMARY KEY, is_admin INTEGER NOT NULL, added_ms INTEGER NOT NULL
);
CREATE TABLE withdrawals (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, intent VARCHAR(40) NOT NULL, user_id INTEGER NOT NULL,
    source VARCHAR(10) NOT NULL, venue VARCHAR(30), inscription_id VARCHAR(80), destination VARCHAR(90) NOT NULL,
    request TEXT NOT NULL, coins TEXT NOT NULL, sent_sats INTEGER, fee_sats INTEGER, txid VARCHAR(64),
    state VARCHAR(10) NOT NULL, reason VARCHAR(400), created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL
);
INSERT INTO "withdrawals" VALUES(1,'0000000000000000000000000000000000000000',1,'payment',NULL,NULL,'bc1qout','{"k": 0}','["0000000000000000000000000000000000000000000000000000000000000040:0", "0000000000000000000000000000000000000000000000000000000000000040:1"]',NULL,NULL,NULL,'reserved',NULL,1790000000600,1790000000600);
INSERT INTO "withdrawals" VALUES(2,'0000000000000000000000000000000000000001',1,'payment',NULL,NULL,'bc1qout','{"k": 1}','["0000000000000000000000000000000000000000000000000000000000000041:0", "0000000000000000000000000000000000000000000000000000000000000041:1"]',10000,500,'0000000000000000000000000000000000000000000000000000000000000021','signed',NULL,1790000000601,1790000000610);
INSERT INTO "withdrawals" VALUES(3,'0000000000000000000000000000000000000002',1,'payment',NULL,NULL,'bc1qout','{"k": 2}','["0000000000000000000000000000000000000000000000000000000000000042:0", "0000000000000000000000000000000000000000000000000000000000000042:1"]',10000,500,'0000000000000000000000000000000000000000000000000000000000000022','submitted',NULL,1790000000602,1790000000620);
INSERT INTO "withdrawals" VALUES(4,'0000000000000000000000000000000000000003',1,'payment',NULL,NULL,'bc1qout','{"k": 3}','["0000000000000000000000000000000000000000000000000000000000000043:0", "0000000000000000000000000000000000000000000000000000000000000043:1"]',10000,500,'0000000000000000000000000000000000000000000000000000000000000023','unknown',NULL,1790000000603,1790000000620);
INSERT INTO "withdrawals" VALUES(5,'0000000000000000000000000000000000000004',1,'payment',NULL,NULL,'bc1qout','{"k": 4}','["0000000000000000000000000000000000000000000000000000000000000044:0", "0000000000000000000000000000000000000000000000000000000000000044:1"]',10000,500,'0000000000000000000000000000000000000000000000000000000000000024','confirmed',NULL,1790000000604,1790000000620);
INSERT INTO "withdrawals" VALUES(6,'0000000000000000000000000000000000000005',1,'payment',NULL,NULL,'bc1qout','{"k": 5}','["0000000000000000000000000000000000000000000000000000000000000045:0", "0000000000000000000000000000000000000000000000000000000000000045:1"]',NULL,NULL,NULL,'refused','too low',1790000000605,1790000000620);
INSERT INTO "withdrawals" VALUES(7,'eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee',1,'escrow','ordnet','7777777777777777777777777777777777777777777777777777777777777777i0','bc1pvault','{}','["0000000000000000000000000000000000000000000000000000000000000063:0"]',NULL,NULL,NULL,'reserved',NULL,1790000000630,1790000000630);
CREATE UNIQUE INDEX "schema_migration_name" ON "schema_migration" ("name");
CREATE UNIQUE INDEX users_address ON users (address);
CREATE INDEX challenges_address ON challenges (address);
CREATE INDEX challenges_user_id ON challenges (user_id);
CREATE INDEX challenges_expires_ms ON challenges (expires_ms);
CREATE UNIQUE INDEX sessions_token_hash ON sessions (token_hash);
CREATE INDEX sessions_user_id ON sessions (user_id);
CREATE INDEX budgets_user_id ON budgets (user_id);
CREATE INDEX tasks_user_id_kind ON tasks (user_id, kind);
CREATE UNIQUE INDEX tasks_user_slug ON tasks (user_id, slug_key) WHERE (deleted_ms IS NULL);
CREATE UNIQUE INDEX tasks_user_inscription ON tasks (user_id, inscription_id) WHERE (deleted_ms IS NULL);
CREATE INDEX tasks_budget_id ON tasks (budget_id) WHERE (budget_id IS NOT NULL);
CREATE UNIQUE INDEX tasks_source_order ON tasks (source_order)
    WHERE ((source_order IS NOT NULL) AND (deleted_ms IS NULL));
CREATE UNIQUE INDEX api_tokens_token_hash ON api_tokens (token_hash);
CREATE INDEX api_tokens_user_id ON api_tokens (user_id);
CREATE INDEX api_tokens_task_id ON api_tokens (task_id);
CREATE UNIQUE INDEX presets_user_id_name ON presets (user_id, name);
CREATE INDEX cycles_task_id ON cycles (task_id);
CREATE UNIQUE INDEX orders_intent ON orders (intent);
CREATE UNIQUE INDEX orders_wallet_expires_ms ON orders (wallet, expires_ms);
CREATE INDEX orders_open_task ON orders (task_id, dry_run, price_sats) WHERE (state != 'closed');
CREATE INDEX orders_open_user ON orders (user_id, dry_run, price_sats) WHERE (state != 'closed');
CREATE INDEX orders_open_wallet ON orders (wallet) WHERE (state != 'closed');
CREATE INDEX orders_filled ON orders (task_id, dry_run, closed_ms, price_sats, filled_ms, sold_sats)
    WHERE (close_reason = 'filled');
CREATE INDEX orders_open_budget ON orders (budget_id, dry_run, task_id, price_sats)
    WHERE ((state != 'closed') AND (budget_id IS NOT NULL));
CREATE INDEX orders_filled_budget ON orders (budget_id, dry_run, closed_ms, price_sats)
    WHERE ((close_reason = 'filled') AND (budget_id IS NOT NULL));
CREATE INDEX orders_fills ON orders (user_id, filled_ms, id) WHERE (close_reason = 'filled');
CREATE INDEX orders_user ON orders (user_id, id);
CREATE INDEX orders_user_task ON orders (user_id, task_id, id);
CREATE INDEX orders_to_list ON orders (id) WHERE (autolist_state = 'waiting');
CREATE INDEX orders_bought ON orders (inscription_id)
    WHERE ((close_reason = 'filled') AND (inscription_id IS NOT NULL));
CREATE UNIQUE INDEX orders_sale ON orders (venue, sale_id) WHERE ((sale_id IS NOT NULL) AND (dry_run = 0));
CREATE UNIQUE INDEX orders_dry_sale ON orders (task_id, sale_id) WHERE ((sale_id IS NOT NULL) AND (dry_run = 1));
CREATE UNIQUE INDEX listings_intent ON listings (intent);
CREATE UNIQUE INDEX listings_open_task ON listings (task_id) WHERE (state != 'closed');
CREATE UNIQUE INDEX listings_open_outpoint ON listings (outpoint) WHERE (state != 'closed');
CREATE INDEX listings_signed ON listings (outpoint, price_sats) WHERE (signed_ms IS NOT NULL);
CREATE INDEX listings_item ON listings (inscription_id, wallet) WHERE (signed_ms IS NOT NULL);
CREATE INDEX listings_task ON listings (task_id, id);
CREATE INDEX listings_sold ON listings (user_id, sold_ms, id) WHERE (close_reason = 'sold');
CREATE UNIQUE INDEX withdrawals_intent ON withdrawals (intent);
CREATE INDEX withdrawals_user ON withdrawals (user_id, id);
CREATE INDEX withdrawals_open ON withdrawals (user_id) WHERE (state NOT IN ('confirmed', 'refused'));
CREATE INDEX floor_samples_minute ON floor_samples (minute);
CREATE INDEX events_user ON events (user_id, id);
CREATE INDEX events_passing ON events (user_id, id) WHERE (is_passing = 1);
CREATE INDEX events_lasting ON events (user_id, id) WHERE ((is_passing = 0) AND (fact IS NULL));
CREATE UNIQUE INDEX events_fact ON events (user_id, fact) WHERE (fact IS NOT NULL);
CREATE INDEX hooks_user_id ON hooks (user_id);
CREATE INDEX deliveries_hook ON deliveries (hook_id, id);
CREATE INDEX deliveries_waiting ON deliveries (hook_id, task_id, id) WHERE (state = 'waiting');
CREATE INDEX deliveries_due ON deliveries (due_ms) WHERE (state = 'waiting');
CREATE UNIQUE INDEX deliveries_event ON deliveries (hook_id, event_id) WHERE (event_id IS NOT NULL);
CREATE INDEX inscriptions_detailed ON inscriptions (fetched_ms) WHERE (detail IS NOT NULL);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('users',2);
INSERT INTO "sqlite_sequence" VALUES('budgets',1);
INSERT INTO "sqlite_sequence" VALUES('tasks',15);
INSERT INTO "sqlite_sequence" VALUES('events',66);
INSERT INTO "sqlite_sequence" VALUES('orders',24);
INSERT INTO "sqlite_sequence" VALUES('listings',11);
INSERT INTO "sqlite_sequence" VALUES('withdrawals',7);
INSERT INTO "sqlite_sequence" VALUES('presets',1);
COMMIT;
